import * as z from 'zod';
import { MAX_ID_LENGTH, MAX_TIME } from './limits';

/** A text of at most so many UTF-16 code units. zod's own `max` counts code points, and nobody else here does. */
export function textUpTo(most: number): z.ZodString {
  return z.string().refine((text) => text.length <= most, `a text of at most ${most} UTF-16 code units`);
}

/** Ids become keys: what a database or a URL can't carry is no id. A path loses `.` and `..`, however they are written. */
export const idSchema = textUpTo(MAX_ID_LENGTH)
  .min(1)
  .regex(/^[^\0\p{Surrogate}]*$/u, 'an id holds no NUL and no half of a surrogate pair')
  .regex(/^(?!\.{1,2}$)/, 'an id is not "." or "..", which no address can name');
/** Epoch milliseconds. Kept as given, whatever the runner's clock says. */
export const timeSchema = z.number().int().min(0).max(MAX_TIME);
