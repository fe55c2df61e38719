import * as z from 'zod';
import { MAX_ATTACHMENT_NAME } from './attachments';
import { ACTIVITY_KEPT_MINUTES, MAX_LOG_SEARCH_LENGTH } from './limits';
import { searchWords } from './list-search';
import { isPosition, positionToNumber } from './position';
import { LISTED_STATES, SESSION_STATES } from './session-states';
import { INBOX_KINDS, LOG_LEVELS } from './vocabulary';

/**
 * Query parameters of GET routes. Each is parsed from the list of its values. The message of an issue names the expected
 * value: "a whole number from 1 to 200". Strict objects reject unknown parameters, so that a misspelled filter is not
 * silently ignored.
 */

/** The first value of a repeated parameter counts; a missing parameter is empty. */
const one = <Schema extends z.ZodType<unknown, string>>(schema: Schema) =>
  z
    .array(z.string())
    .default([])
    .transform(([first = '']) => first)
    .pipe(schema);

const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null);

const text = orNull(one(z.string()));

/**
 * Adds the description for the OpenAPI document. `.meta({ type })` adds the JSON Schema that a transformation hides.
 */
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
    .meta({ description: 'Maximum number of rows.' });

const position = one(
  z
    .string()
    .refine(isPosition, { message: 'a position from another response' })
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

/** Maximum number of rows on one page of a list. */
export const LIST_LIMIT = 1_000;

/** Longest search text in a list, in UTF-16 code units. */
const MAX_LIST_SEARCH_LENGTH = 200;

export const agentsQuery = z.object({
  after: means('The `next` of the previous page; 0 starts paging from the beginning.', text),
  limit: limit(LIST_LIMIT, LIST_LIMIT),
  q: one(z.string().max(MAX_LIST_SEARCH_LENGTH, { message: `at most ${MAX_LIST_SEARCH_LENGTH} characters` }))
    .default('')
    .transform(searchWords)
    .meta({
      type: 'string',
      maxLength: MAX_LIST_SEARCH_LENGTH,
      description: 'Words that a row must all contain, ignoring case.',
    }),
});
export const sessionsQuery = agentsQuery.extend({
  agent: means('Only of this agent.', text),
  state: means(
    'Only sessions in one of these states.',
    z.array(z.enum(SESSION_STATES, { message: `one of ${SESSION_STATES.join(', ')}` })).default([]),
  ),
  listed: means(
    'Only sessions that people find under one of these states: a crashed process under `failed`, and a session that went silent during work under `lost`.',
    z.array(z.enum(LISTED_STATES, { message: `one of ${LISTED_STATES.join(', ')}` })).default([]),
  ),
});
export const inboxQuery = agentsQuery.extend({
  agent: means('Only of this agent.', text),
  session: means('Only of this session.', text),
  kind: means(
    'Only items of one of these kinds.',
    z.array(z.enum(INBOX_KINDS, { message: `one of ${INBOX_KINDS.join(', ')}` })).default([]),
  ),
  by: means(
    '`owner`: `limit` sessions and agents, each once and with all of its items, in the order of its first matching item.',
    one(z.enum(['item', 'owner'], { message: 'item or owner' })).default('item'),
  ),
});
export type InboxQuery = z.infer<typeof inboxQuery>;
export type AgentsQuery = z.infer<typeof agentsQuery>;
export type SessionsQuery = z.infer<typeof sessionsQuery>;

export const transcriptQuery = z.object({
  before: means('Id or position of a turn: returns the turns before it.', text),
  limit: limit(50, 200),
});

export const turnAtQuery = z.strictObject({
  at: means('A time on the clock of the agent’s runner, in epoch milliseconds.', time),
});

export const taskQuery = z.object({
  runId: means('The run, if the agent reuses task ids; default: the newest.', text),
  position: means('`Task.position` of the run, if ids don’t distinguish runs.', orNull(position)),
});

export const attachmentQuery = z.strictObject({
  name: means(
    'File name.',
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
  session: means('The session that owns it.', one(z.string().min(1, { message: 'the session that has it' }))),
  name: means('File name for the download.', text),
});
export type AttachmentBytesQuery = z.infer<typeof attachmentBytesQuery>;

export const agUiQuery = z.strictObject({
  session: means('The session to bind the client’s thread to, if the client chooses its own thread ids.', text),
});

export const webhookDeliveriesQuery = z.strictObject({
  before: means('The `next` of the previous page.', orNull(position)),
  limit: limit(50, 200),
});

/** Filters match exactly. */
export const auditQuery = z.strictObject({
  before: means('The `next` of the previous page.', orNull(line)),
  limit: limit(100, 1_000),
  actor: means('Only by this actor.', text),
  action: means('Only this action.', text),
  agent: means('Only on this agent.', text),
  session: means('Only on this session.', text),
  credential: means('Only with this credential.', text),
  result: means('Only with this result: `done`, or an error code.', text),
});
export type AuditQuery = z.infer<typeof auditQuery>;

export const activityQuery = z.strictObject({
  minutes: means('Minutes to cover, up to a day.', limit(60, ACTIVITY_KEPT_MINUTES)),
});

export const parkedQuery = z.strictObject({
  state: means(
    'State of the records.',
    one(z.enum(['parked', 'assigned', 'discarded'], { message: 'parked, assigned, discarded' })).default('parked'),
  ),
  after: means('Position of the last record of the previous page.', position.default(0)),
  limit: limit(50, 200),
});

const tooLong = `at most ${MAX_LOG_SEARCH_LENGTH} characters`;
const logFilter = {
  level: means(
    'Least severe level to return.',
    orNull(one(z.enum(LOG_LEVELS, { message: `one of ${LOG_LEVELS.join(', ')}` }))),
  ),
  component: means('Only lines of one of these components.', z.array(z.string()).default([])),
  q: means(
    'Terms that the message must all contain, ignoring case. `"a phrase"` is one term.',
    one(z.string().max(MAX_LOG_SEARCH_LENGTH, { message: tooLong })).default(''),
  ),
  regex: means('A regular expression in RE2 syntax that must match within the message.', text),
  from: means('Not before this time, in epoch milliseconds.', orNull(time)),
  to: means('Not after this time, in epoch milliseconds.', orNull(time)),
};

/** For a download: every matching line. */
export const logFilterQuery = z.strictObject(logFilter);
export type LogFilterQuery = z.infer<typeof logFilterQuery>;

const LOG_PLACES = ['before', 'after', 'around', 'line', 'at'] as const;

/** One page: the newest, or the one at the given place. */
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
    if (second !== undefined) addIssue({ code: 'custom', path: [second], message: `can’t be combined with ${first}` });
  });
export type LogQuery = z.infer<typeof logQuery>;
