import { AppError } from '@/lib/protocol/errors';
import { MAX_RECORD_BYTES } from '@/lib/protocol/limits';
import { utf8Length } from '@/lib/protocol/log-text';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';

/**
 * What a command or its acknowledgement carries, as it is stored: no longer than a record, so that every database holds
 * it.
 *
 * @param what names it in the refusal
 * @throws AppError `too_large`
 */
export function boundedJson(value: unknown, what: string): string {
  const json = stringifyWellFormed(value);
  // a UTF-16 unit takes at most three bytes
  if (json.length * 3 <= MAX_RECORD_BYTES || utf8Length(json) <= MAX_RECORD_BYTES) return json;
  throw new AppError('too_large', `${what} may hold ${MAX_RECORD_BYTES} bytes as JSON. Send less of it.`, {
    details: { maxBytes: MAX_RECORD_BYTES },
  });
}
