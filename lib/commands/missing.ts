import { AppError } from '@/lib/protocol/errors';

/** The refusal of what names something that is not there. */
export function missing(what: string, id: string, hint: string): AppError {
  return new AppError('not_found', `There is no ${what} ${JSON.stringify(id)}. ${hint}`);
}
