import { endStreams } from '@/lib/fan-out/fan-out-of';
import { stream } from '@/lib/fan-out/stream';
import { type Handler, mount } from '../../mount';

let isListening = false;

const get: Handler = (request, server) => {
  // Next waits for open responses when it is told to stop; a stream would keep it waiting for ever.
  if (!isListening) for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, endStreams);
  isListening = true;
  return stream(request, server);
};

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ GET: get });
