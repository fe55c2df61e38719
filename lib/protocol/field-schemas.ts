import * as z from 'zod';
import { isId } from './fields';
import { MAX_ID_LENGTH, MAX_TIME } from './limits';
import { AGENT_STATES, SESSION_STATES } from './session-states';
import { LOG_LEVELS } from './vocabulary';

/** A string of at most `most` UTF-16 code units. zod's own `max` counts code points, which no other limit here does. */
export function textUpTo(most: number): z.ZodString {
  return z.string().refine((text) => text.length <= most, `a text of at most ${most} UTF-16 code units`);
}

export const idSchema = z
  .string()
  .refine(isId, `an id has 1 to ${MAX_ID_LENGTH} UTF-16 code units, no NUL, no half of a pair, and is not "." or ".."`);

/** Epoch milliseconds, kept as sent, even if the runner's clock is wrong. */
export const timeSchema = z.number().int().min(0).max(MAX_TIME);

export const Position = z
  .string()
  .regex(/^(0|[1-9]\d{0,15})$/)
  .describe(
    'A row’s place in the server’s single order: a decimal integer as a string, assigned at commit from one counter for all kinds of rows. A later commit has a greater position; within a commit, positions follow `seq`. Opaque to clients: compare positions, or pass them back as `after` or `Last-Event-ID`.',
  );

export const LogLevel = z.enum(LOG_LEVELS).describe('From the least to the most severe.');

export const AgentState = z
  .enum(AGENT_STATES)
  .describe(
    'Most urgent first. As SessionState, but a crashed process counts as `failed`. `lost`: went silent with work in progress. `seen`: failed or lost, and a person has seen that or archived the session.',
  );

export const SessionState = z
  .enum(SESSION_STATES)
  .describe(
    'In display order. `needs-input`: a permission or question is open. `failed`: the agent reported a failure, or its last turn failed. `working`: a turn is open, or a message is on its way. `waiting-on-background`: no turn is open and tasks run. `starting`: nothing has been observed yet. `unknown`: no sign of life; `evidence.last` is the state before. `idle`: no turn is open. `complete`: the agent reported that its work is done. `exited`: its process has ended.',
  );

export const Attachment = z
  .object({
    hash: z.string().describe('SHA-256 of the bytes, in lower-case hex.'),
    name: z.string().describe('File name. The same bytes may have another name in another message.'),
    mediaType: z.string().describe('One of the accepted types, without parameters.'),
    bytes: z.number().describe('Size in bytes.'),
  })
  .describe('A file that a message carries.');
export type Attachment = z.infer<typeof Attachment>;

/**
 * An object with arbitrary names, passed on unchanged. zod's own `record` silently drops `__proto__`, so the checked
 * value would not be the sent one.
 *
 * @param value checks each of its values, and changes none
 */
export function namedValues<Value>(value: z.ZodType<Value>): z.ZodType<Record<string, Value>> {
  return z.custom<Record<string, Value>>().superRefine((given, context) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      context.addIssue({ code: 'custom', message: 'Invalid input: expected an object' });
      return;
    }
    for (const [name, entry] of Object.entries(given)) {
      const issue = value.safeParse(entry).error?.issues[0];
      if (issue === undefined) continue;
      context.addIssue({ code: 'custom', message: issue.message, path: [name, ...issue.path] });
      return;
    }
  });
}
