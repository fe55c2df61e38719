import * as z from 'zod';
import { isId } from './is-id';
import { MAX_ID_LENGTH, MAX_TIME } from './limits';

/** A text of at most so many UTF-16 code units. zod's own `max` counts code points, and nobody else here does. */
export function textUpTo(most: number): z.ZodString {
  return z.string().refine((text) => text.length <= most, `a text of at most ${most} UTF-16 code units`);
}

export const idSchema = z
  .string()
  .refine(isId, `an id has 1 to ${MAX_ID_LENGTH} UTF-16 code units, no NUL, no half of a pair, and is not "." or ".."`);
/** Epoch milliseconds. Kept as given, whatever the runner's clock says. */
export const timeSchema = z.number().int().min(0).max(MAX_TIME);
