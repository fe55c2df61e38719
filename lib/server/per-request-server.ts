import { contextKind } from '@/db/client';
import { createServer, ProcessMemory, type Server } from './create-server';

/**
 * The server of a process that may freeze after any answer: each request makes one of its own, and everything that it
 * opens ends with it. Only what was read from the environment, and who guessed wrong, is kept in between.
 *
 * Failure: a process that freezes or is killed holds nothing that others wait for.
 */
export function perRequestServer(env: Record<string, string | undefined>): Server {
  const memory = new ProcessMemory(env, 'perRequest');
  const one = () => createServer(env, 'perRequest', memory);
  return {
    handle: (request) => one().handle(request),
    answer: (request) => one().answer(request),
    knows: (request) => one().knows(request),
    visitor: (headers) => one().visitor(headers),
    async parts() {
      const parts = await one().parts();
      await parts.commands.sweepDue();
      return parts;
    },
    description: () => one().description(),
    start: async () => {},
    close: async () => {},
  };
}

/** The server that the environment describes, of the kind that its host allows. */
export function serverOf(env: Record<string, string | undefined>): Server {
  return contextKind(env) === 'shared' ? createServer(env) : perRequestServer(env);
}
