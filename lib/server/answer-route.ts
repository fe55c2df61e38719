import { AppError } from '@interlude/protocol/errors';
import { isRedacted } from '@interlude/protocol/redaction/redact-model';
import { wellFormed } from '@interlude/protocol/well-formed';
import * as z from 'zod';
import { Yielder } from '@/db/yield-to-loop';
import type { Asked } from '@/lib/server/access/asked';
import { actOf, audited } from '@/lib/server/access/audited';
import type { Principal } from '@/lib/server/access/principal';
import { requireReach } from '@/lib/server/access/require-reach';
import { shownDigests } from '@/lib/server/access/shown-digests';
import { describeIssue, parseJson } from '@/lib/server/ingest/parse-request';
import { readBody } from '@/lib/server/ingest/read-body';
import { answer } from '@/lib/server/queries/answer';
import { toldModel } from '@/lib/server/queries/told-model';
import type { ApiRoute, Ids, Schema } from './routes';
import type { ServerParts } from './server-parts';

/**
 * The one place where a route's query and body are parsed by its schemas, and where a model becomes an answer.
 *
 * @throws AppError what reading a body throws; `invalid_argument` that names the argument or field and what is allowed;
 *   and what the handler throws
 */
export async function answerRoute(
  { access, handler, takes, status, action, pattern }: ApiRoute,
  request: Request,
  server: ServerParts,
  ids: Ids,
  principal: Principal,
): Promise<Response> {
  if (principal.redacts && TELLS_ALL.test(pattern)) throw tellsAll();
  const query = takes.query === undefined ? undefined : readQuery(request.url, takes.query);
  const bytes = takes.bodies === undefined ? null : await readBody(request);
  const body = bytes === null || takes.bodies === undefined ? undefined : await readJson(bytes, takes.bodies);
  const of = LOG_ROUTE.test(pattern) ? 'log' : 'agent';
  const whenOver = (onEnd: () => void) => server.credentials.watch(principal, access, onEnd);
  const digests = await shownDigests(principal, server.database);
  const asked = { ids, query, body, request, principal, digests, whenOver };
  if (action === null) {
    await requireReach(server.database, principal.scope, ids, of);
    return responseOf(await handler(asked, server), status, asked);
  }
  const act = actOf(request, principal, action, ids, bytes);
  try {
    await requireReach(server.database, principal.scope, ids, of);
    const { database, noted } = audited(server.database, act, server.now);
    const model = await handler(asked, { ...server, database });
    // some acts write nothing themselves
    if (noted.count === 0) await database.writes.run(async () => undefined);
    return await responseOf(model, status, asked);
  } catch (error) {
    await server.refusals.note(act, error);
    throw error;
  }
}

const LOG_ROUTE = /\/agents\/:agentId\/log(s|-level)\b/;

/** Routes that answer in words of their own, which nobody takes secrets out of. */
const TELLS_ALL = /\/agui\//;

/** Whoever is told no secrets is answered only what they were taken out of: what a route forgets is refused. */
async function responseOf(
  model: object,
  status: ApiRoute['status'],
  { principal, digests }: Pick<Asked, 'principal' | 'digests'>,
): Promise<Response> {
  if (model instanceof Response) {
    if (!principal.redacts || isRedacted(model)) return model;
    await model.body?.cancel();
    throw tellsAll();
  }
  return answer(await toldModel(model, principal, digests), status);
}

function tellsAll(): AppError {
  return new AppError(
    'forbidden',
    'This answer can’t be cleared of secrets, and this credential is told none. Ask with one that may see them.',
  );
}

function readQuery(url: string, schema: Schema): unknown {
  const given = new URL(url).searchParams;
  const lists = Object.fromEntries([...new Set(given.keys())].map((name) => [name, given.getAll(name)]));
  const parsed = schema.safeParse(lists);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const name = unknown ?? String(issue?.path[0]);
  const text = given.get(name) ?? '';
  const known = Object.keys(schema.shape).join(', ');
  const message =
    unknown !== undefined
      ? `${JSON.stringify(name)} is not known here. Use ${known}, or leave it out.`
      : `${name}=${JSON.stringify(text.slice(0, MAX_QUOTED))} can’t be used: it must be ${issue?.message}.`;
  const details = { ...choicesOf(schema, [name]), [name]: text.slice(0, MAX_QUOTED) };
  throw new AppError('invalid_argument', message, { details });
}

/** How much of a bad argument its refusal quotes. */
const MAX_QUOTED = 1_000;

/**
 * Parses a body and makes its strings well-formed. An empty one counts as `{}`: some requests say everything in the
 * path. Others get their turns in between, because a body may hold as many values as a record.
 */
async function readJson(bytes: Uint8Array, schemas: readonly Schema[]): Promise<unknown> {
  const pace = new Yielder();
  const input = bytes.byteLength === 0 ? {} : parseJson(bytes);
  const schema = schemaFor(input, schemas);
  await pace.rest();
  const parsed = schema.safeParse(input);
  await pace.rest();
  if (parsed.success) {
    const data = wellFormed(parsed.data);
    await pace.rest();
    return data;
  }
  const fields = Object.keys(schema.shape);
  const choices = choicesOf(schema, fields);
  const named = fields.map((name) => (`${name}s` in choices ? `${name} (${choices[`${name}s`]?.join(', ')})` : name));
  const message = `${describeIssue(parsed.error)}. The fields are: ${named.join(', ')}.`;
  throw new AppError('invalid_argument', message, { details: { fields, ...choices } });
}

/** Of several schemas, the one that has a required field in common with the body. */
function schemaFor(input: unknown, schemas: readonly Schema[]): Schema {
  const has = (name: string) => typeof input === 'object' && input !== null && name in input;
  const isMeant = ({ shape }: Schema) =>
    Object.entries(shape).some(([name, field]) => has(name) && !z.safeParse(field, undefined).success);
  return schemas.findLast(isMeant) ?? (schemas[0] as Schema);
}

/** The allowed values of fields that are a choice: `levels` for `level`. */
function choicesOf({ shape }: Schema, names: readonly string[]): Record<string, readonly unknown[]> {
  const choices: Record<string, readonly unknown[]> = {};
  for (const name of names) {
    const options = optionsOf(shape[name]);
    if (options !== null) choices[`${name}s`] = options;
  }
  return choices;
}

function optionsOf(field: unknown): readonly unknown[] | null {
  if (field instanceof z.ZodEnum) return field.options;
  if (field instanceof z.ZodPipe) return optionsOf(field.out);
  const isWrapper = field instanceof z.ZodOptional || field instanceof z.ZodNullable || field instanceof z.ZodDefault;
  return isWrapper ? optionsOf(field.unwrap()) : null;
}
