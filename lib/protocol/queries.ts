import * as z from 'zod';
import { MAX_ATTACHMENT_NAME } from './attachments';
import { INBOX_KINDS } from './inbox-kinds';
import { ACTIVITY_KEPT_MINUTES, MAX_LOG_SEARCH_LENGTH } from './limits';
import { searchWords } from './list-search';
import { isPosition, positionToNumber } from './position';
import { LOG_LEVELS } from './record-vocabulary';
import { SESSION_STATES } from './session-states';

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

/** What an argument means, as the API's description says it; and its JSON Schema, where a transformation hides it. */
const means = <Schema extends z.ZodType>(description: string, schema: Schema): Schema => schema.meta({ description });

const limit = (byDefault: number, most: number) =>
  one(
    z
      .string()
      .refine((given) => /^\d{1,9}$/.test(given) && Number(given) >= 1 && Number(given) <= most, {
        message: `a whole number from 1 to ${most}`,
      })
      .transform(Number)
      .meta({ type: 'integer', minimum: 1, maximum: most }),
  )
    .default(byDefault)
    .meta({ description: 'How many at most.' });

const position = one(
  z
    .string()
    .refine(isPosition, { message: 'a position, as another answer gave it' })
    .transform(positionToNumber)
    .meta({ type: 'string', pattern: '^(0|[1-9][0-9]{0,15})$' }),
);

const time = one(
  z
    .string()
    .regex(/^\d{1,15}$/, { message: 'a time in epoch milliseconds' })
    .transform(Number)
    .meta({ type: 'integer', minimum: 0 }),
);

const line = one(
  z
    .string()
    .regex(/^[1-9]\d{0,9}$/, { message: 'the number of a line, from 1' })
    .transform(Number)
    .meta({ type: 'integer', minimum: 1 }),
);

/** Most rows of one page of a list. */
export const LIST_LIMIT = 1_000;

/** Longer than this, in UTF-16 units, nothing is searched for in a list. */
export const MAX_LIST_SEARCH_LENGTH = 200;

/** `after` is 0 or the `next` of an answer. `q`: words, all of which a row has, whatever their case. */
export const agentsQuery = z.object({
  after: means('The `next` of the page before, or 0: page by page from the beginning.', text),
  limit: limit(LIST_LIMIT, LIST_LIMIT),
  q: one(z.string().max(MAX_LIST_SEARCH_LENGTH, { message: `at most ${MAX_LIST_SEARCH_LENGTH} characters` }))
    .default('')
    .transform(searchWords)
    .meta({
      type: 'string',
      maxLength: MAX_LIST_SEARCH_LENGTH,
      description: 'Words, all of which a row has, whatever their case.',
    }),
});
export const sessionsQuery = agentsQuery.extend({
  agent: means('Of this agent.', text),
  state: means(
    'In one of these states.',
    z.array(z.enum(SESSION_STATES, { message: `one of ${SESSION_STATES.join(', ')}` })).default([]),
  ),
});
export const inboxQuery = agentsQuery.extend({
  agent: means('Of this agent.', text),
  session: means('Of this session.', text),
  kind: means(
    'Of one of these kinds.',
    z.array(z.enum(INBOX_KINDS, { message: `one of ${INBOX_KINDS.join(', ')}` })).default([]),
  ),
});
export type InboxQuery = z.infer<typeof inboxQuery>;
export type AgentsQuery = z.infer<typeof agentsQuery>;
export type SessionsQuery = z.infer<typeof sessionsQuery>;

export const transcriptQuery = z.object({
  before: means('A turn’s id or position: the turns before it.', text),
  limit: limit(50, 200),
});

export const turnAtQuery = z.strictObject({
  at: means('A time by the clock of the agent’s runner, in epoch milliseconds.', time),
});

export const taskQuery = z.object({
  runId: means('Which run, where the agent re-uses task ids; the newest unless named.', text),
  position: means('`Task.position` of the run, where neither id tells runs apart.', orNull(position)),
});

export const attachmentQuery = z.strictObject({
  name: means(
    'What people call the file.',
    one(
      z
        .string()
        .refine((name) => name.trim() !== '' && name.length <= MAX_ATTACHMENT_NAME, {
          message: `the name of the file, at most ${MAX_ATTACHMENT_NAME} UTF-16 code units`,
        })
        .transform((name) => name.toWellFormed())
        .meta({ type: 'string', minLength: 1, maxLength: MAX_ATTACHMENT_NAME }),
    ),
  ),
});
export type AttachmentQuery = z.infer<typeof attachmentQuery>;

export const attachmentBytesQuery = z.strictObject({
  session: means('The session that has it.', one(z.string().min(1, { message: 'the session that has it' }))),
  name: means('Under which it is saved.', text),
});
export type AttachmentBytesQuery = z.infer<typeof attachmentBytesQuery>;

export const agUiQuery = z.strictObject({
  session: means('To which the client’s thread is bound, where it makes thread ids of its own.', text),
});

export const webhookDeliveriesQuery = z.strictObject({
  before: means('The `next` of the page before.', orNull(position)),
  limit: limit(50, 200),
});

/** Each of them exactly. */
export const auditQuery = z.strictObject({
  before: means('The `next` of the page before.', orNull(line)),
  limit: limit(100, 1_000),
  actor: means('Who did it, by name.', text),
  action: means('What was done.', text),
  agent: means('To this agent.', text),
  session: means('To this session.', text),
  credential: means('With this credential.', text),
  result: means('`done`, or the code of the refusal.', text),
});
export type AuditQuery = z.infer<typeof auditQuery>;

export const activityQuery = z.strictObject({
  minutes: means('Of how many minutes, up to a day.', limit(60, ACTIVITY_KEPT_MINUTES)),
});

export const parkedQuery = z.strictObject({
  state: means(
    'What became of them.',
    one(z.enum(['parked', 'assigned', 'discarded'], { message: 'parked, assigned, discarded' })).default('parked'),
  ),
  after: means('The position of the last one of the page before.', position.default(0)),
  limit: limit(50, 200),
});

const tooLong = `at most ${MAX_LOG_SEARCH_LENGTH} characters`;
const logFilter = {
  level: means(
    'At least of this level.',
    orNull(one(z.enum(LOG_LEVELS, { message: `one of ${LOG_LEVELS.join(', ')}` }))),
  ),
  component: means('Of one of these components.', z.array(z.string()).default([])),
  q: means(
    'Terms with blanks in between, all of which the message has, in any case; `"a phrase"` is one term.',
    one(z.string().max(MAX_LOG_SEARCH_LENGTH, { message: tooLong })).default(''),
  ),
  regex: means('A regular expression in RE2 syntax that matches somewhere in the message.', text),
  from: means('Not before this time, in epoch milliseconds.', orNull(time)),
  to: means('Not after this time, in epoch milliseconds.', orNull(time)),
};

/** Of a download: everything that passes the filter. */
export const logFilterQuery = z.strictObject(logFilter);
export type LogFilterQuery = z.infer<typeof logFilterQuery>;

const LOG_PLACES = ['before', 'after', 'around', 'line', 'at'] as const;

/** One page: the newest, or the one that a place says. */
export const logQuery = z
  .strictObject({
    ...logFilter,
    before: means('The lines before this position.', orNull(position)),
    after: means('The lines after this position.', orNull(position)),
    around: means('The lines around this position.', orNull(position)),
    line: means('The lines around the one with this number.', orNull(line)),
    at: means('The lines around this time, in epoch milliseconds.', orNull(time)),
    limit: limit(200, 1_000),
  })
  .superRefine((given, { addIssue }) => {
    const [first, second] = LOG_PLACES.filter((place) => given[place] !== null);
    if (second !== undefined) addIssue({ code: 'custom', path: [second], message: `left out where ${first} is given` });
  });
export type LogQuery = z.infer<typeof logQuery>;
