import { AppError } from '@/lib/protocol/errors';

/** The refusal of what names something that is not there. */
export function missing(what: string, id: string, hint: string): AppError {
  return new AppError('not_found', `There is no ${what} ${JSON.stringify(id)}. ${hint}`);
}

/** The refusal of what can't be done as things stand; `reason` tells programs which. */
export function conflict(reason: string, message: string, details: Record<string, unknown> = {}): AppError {
  return new AppError('conflict', message, { details: { reason, ...details } });
}
