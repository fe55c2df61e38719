import { endCommandStreams } from '@/lib/commands/command-hub';
import { getCommands } from '@/lib/commands/get-commands';
import { type Handler, mount } from '../../../../mount';

let isListening = false;

const get: Handler = (request, server, ids) => {
  // Next waits for open responses when it is told to stop; a stream would keep it waiting for ever.
  if (!isListening) for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, endCommandStreams);
  isListening = true;
  return getCommands(request, server, ids);
};

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ GET: get });
