import { authenticate } from '@/lib/access/authenticate';
import { AppError } from '@/lib/protocol/errors';
import { type Handler, mount } from '../mount';

const nothing: Handler = async (request, server) => {
  await authenticate(request, server);
  throw new AppError(
    'not_found',
    `There is nothing at ${new URL(request.url).pathname}. PROTOCOL.md lists the routes.`,
  );
};

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({
  GET: nothing,
  HEAD: nothing,
  OPTIONS: nothing,
  POST: nothing,
  PUT: nothing,
  PATCH: nothing,
  DELETE: nothing,
});
