import * as z from 'zod';
import { SESSION_STATES } from './agent-state';
import { MAX_ATTACHMENT_NAME } from './attachments';
import { INBOX_KINDS } from './inbox';
import { ACTIVITY_KEPT_MINUTES, MAX_LOG_SEARCH_LENGTH } from './limits';
import { searchWords } from './list-search';
import { LOG_LEVELS } from './log-levels';
import { isPosition, positionToNumber } from './position';

/**
 * What the arguments of GET routes may be. Each is given as the list of its values; an issue's message says what it must
 * be: "a whole number from 1 to 200". A strict object refuses arguments it does not know, where a filter that is not
 * applied would be taken for one that is.
 */

/** Of an argument that is repeated the first value counts; one that is missing is empty. */
const one = <Schema extends z.ZodType<unknown, string>>(schema: Schema) =>
  z
    .array(z.string())
    .default([])
    .transform(([first = '']) => first)
    .pipe(schema);

const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null);

const text = orNull(one(z.string()));

const limit = (byDefault: number, most: number) =>
  one(
    z
      .string()
      .refine((given) => /^\d{1,9}$/.test(given) && Number(given) >= 1 && Number(given) <= most, {
        message: `a whole number from 1 to ${most}`,
      })
      .transform(Number),
  ).default(byDefault);

const position = one(
  z.string().refine(isPosition, { message: 'a position, as another answer gave it' }).transform(positionToNumber),
);

const time = one(
  z
    .string()
    .regex(/^\d{1,15}$/, { message: 'a time in epoch milliseconds' })
    .transform(Number),
);

const line = one(
  z
    .string()
    .regex(/^[1-9]\d{0,9}$/, { message: 'the number of a line, from 1' })
    .transform(Number),
);

/** Most rows of one page of a list. */
export const LIST_LIMIT = 1_000;

/** Longer than this, in UTF-16 units, nothing is searched for in a list. */
export const MAX_LIST_SEARCH_LENGTH = 200;

/** `after` is 0 or the `next` of an answer. `q`: words, all of which a row has, whatever their case. */
export const agentsQuery = z.object({
  after: text,
  limit: limit(LIST_LIMIT, LIST_LIMIT),
  q: one(z.string().max(MAX_LIST_SEARCH_LENGTH, { message: `at most ${MAX_LIST_SEARCH_LENGTH} characters` }))
    .default('')
    .transform(searchWords),
});
export const sessionsQuery = agentsQuery.extend({
  agent: text,
  state: z.array(z.enum(SESSION_STATES, { message: `one of ${SESSION_STATES.join(', ')}` })).default([]),
});
export const inboxQuery = agentsQuery.extend({
  agent: text,
  session: text,
  kind: z.array(z.enum(INBOX_KINDS, { message: `one of ${INBOX_KINDS.join(', ')}` })).default([]),
});
export type InboxQuery = z.infer<typeof inboxQuery>;
export type AgentsQuery = z.infer<typeof agentsQuery>;
export type SessionsQuery = z.infer<typeof sessionsQuery>;

/** `before`: a turn's id or a position. */
export const transcriptQuery = z.object({ before: text, limit: limit(50, 200) });

export const turnAtQuery = z.strictObject({ at: time });

/** `runId`, where the agent re-uses task ids. */
export const taskQuery = z.object({ runId: text });

/** `position`: of the run, where neither id tells runs apart. */
export const taskOutputQuery = taskQuery.extend({ position: orNull(position) });

/** `name`: what people call it. */
export const attachmentQuery = z.strictObject({
  name: one(
    z
      .string()
      .refine((name) => name.trim() !== '' && name.length <= MAX_ATTACHMENT_NAME, {
        message: `the name of the file, at most ${MAX_ATTACHMENT_NAME} UTF-16 code units`,
      })
      .transform((name) => name.toWellFormed()),
  ),
});
export type AttachmentQuery = z.infer<typeof attachmentQuery>;

/** `session`: which has it. */
export const attachmentBytesQuery = z.strictObject({
  session: one(z.string().min(1, { message: 'the session that has it' })),
  name: text,
});
export type AttachmentBytesQuery = z.infer<typeof attachmentBytesQuery>;

/** `session`: to which the client’s thread is bound, where it makes thread ids of its own. */
export const agUiQuery = z.strictObject({ session: text });

/** `before`: where the page before this one has ended. */
export const webhookDeliveriesQuery = z.strictObject({ before: orNull(position), limit: limit(50, 200) });

/** Each of them exactly. `before`: the number of the last entry of the page before this one. */
export const auditQuery = z.strictObject({
  before: orNull(line),
  limit: limit(100, 1_000),
  actor: text,
  action: text,
  agent: text,
  session: text,
  credential: text,
  result: text,
});
export type AuditQuery = z.infer<typeof auditQuery>;

/** `minutes`: of how many, up to a day. */
export const activityQuery = z.strictObject({ minutes: limit(60, ACTIVITY_KEPT_MINUTES) });

export const parkedQuery = z.strictObject({
  state: one(z.enum(['parked', 'assigned', 'discarded'], { message: 'parked, assigned, discarded' })).default('parked'),
  after: position.default(0),
  limit: limit(50, 200),
});

const tooLong = `at most ${MAX_LOG_SEARCH_LENGTH} characters`;
const logFilter = {
  level: orNull(one(z.enum(LOG_LEVELS, { message: `one of ${LOG_LEVELS.join(', ')}` }))),
  component: z.array(z.string()).default([]),
  q: one(z.string().max(MAX_LOG_SEARCH_LENGTH, { message: tooLong })).default(''),
  regex: text,
  from: orNull(time),
  to: orNull(time),
};

/** Of a download: everything that passes the filter. */
export const logFilterQuery = z.strictObject(logFilter);
export type LogFilterQuery = z.infer<typeof logFilterQuery>;

const LOG_PLACES = ['before', 'after', 'around', 'line', 'at'] as const;

/** One page: the newest, or the one that a place says. */
export const logQuery = z
  .strictObject({
    ...logFilter,
    before: orNull(position),
    after: orNull(position),
    around: orNull(position),
    line: orNull(line),
    at: orNull(time),
    limit: limit(200, 1_000),
  })
  .superRefine((given, { addIssue }) => {
    const [first, second] = LOG_PLACES.filter((place) => given[place] !== null);
    if (second !== undefined) addIssue({ code: 'custom', path: [second], message: `left out where ${first} is given` });
  });
export type LogQuery = z.infer<typeof logQuery>;
