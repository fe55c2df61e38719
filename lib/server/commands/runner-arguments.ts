import { AppError } from '@interlude/protocol/errors';
import { idSchema, timeSchema } from '@interlude/protocol/field-schemas';
import type { RunnerRef } from './runner-connection';

/**
 * Which runner sends a request: `?runner=<id>&startedAt=<ms>`, or the same two in its body.
 *
 * @returns null when it does not say
 * @throws AppError `invalid_argument`
 */
export function runnerIn(request: Request, body: { runner?: string; startedAt?: number } = {}): RunnerRef | null {
  const query = new URL(request.url).searchParams;
  const id = body.runner ?? query.get('runner');
  const startedAt = body.startedAt ?? query.get('startedAt');
  if (id === null && startedAt === null) return null;
  const number = typeof startedAt === 'string' && /^\d{1,16}$/.test(startedAt) ? Number(startedAt) : startedAt;
  if (!idSchema.safeParse(id).success || !timeSchema.safeParse(number).success) {
    throw new AppError(
      'invalid_argument',
      'A runner names itself with runner=<its id> and startedAt=<epoch milliseconds>, both or neither.',
    );
  }
  return { id: id as string, startedAt: number as number };
}
