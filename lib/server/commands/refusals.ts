import { AppError } from '@interlude/protocol/errors';

/** Refuses what names something that does not exist. */
export function missing(what: string, id: string, hint: string): AppError {
  return new AppError('not_found', `There is no ${what} ${JSON.stringify(id)}. ${hint}`);
}

/** Refuses what can't be done as things stand; `reason` says why, for programs. */
export function conflict(reason: string, message: string, details: Record<string, unknown> = {}): AppError {
  return new AppError('conflict', message, { details: { reason, ...details } });
}
