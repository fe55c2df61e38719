import { AppError } from '@interlude/protocol/errors';
import { wellFormed } from '@interlude/protocol/json';
import { isRedacted } from '@interlude/protocol/redaction/redact-model';
import { RegExpRouter } from 'hono/router/reg-exp-router';
import * as z from 'zod';
import { Yielder } from '@/db/yield-to-loop';
import { describeAction, withAudit } from '@/lib/server/access/audit';
import { type Principal, requireScope } from '@/lib/server/access/principal';
import type { RequestContext } from '@/lib/server/access/request-context';
import { shownDigests } from '@/lib/server/access/shown-digests';
import { describeIssue, parseJson } from '@/lib/server/ingest/parse-request';
import { readBody } from '@/lib/server/ingest/read-body';
import { jsonResponse, redactResponse } from '@/lib/server/queries/json-response';
import { type ApiRoute, type Ids, METHODS, ROUTES, type Route, type Schema } from './routes';
import type { ServerParts } from './server-parts';

/**
 * Parses a route's query and body by its schemas, calls the handler and encodes its result.
 *
 * @throws AppError for the body; `invalid_argument` with the argument's name and its allowed values; errors of the
 * handler
 */
export async function handleRoute(
  { access, handler, accepts, status, action, pattern }: ApiRoute,
  request: Request,
  server: ServerParts,
  ids: Ids,
  principal: Principal,
): Promise<Response> {
  if (principal.redacts && UNREDACTED_ROUTES.test(pattern)) throw cannotRedact();
  const query = accepts.query === undefined ? undefined : readQuery(request.url, accepts.query);
  const bytes = accepts.bodies === undefined ? null : await readBody(request);
  const body = bytes === null || accepts.bodies === undefined ? undefined : await readJson(bytes, accepts.bodies);
  const of = LOG_ROUTE.test(pattern) ? 'log' : 'agent';
  const whenOver = (onEnd: () => void) => server.credentials.watch(principal, access, onEnd);
  const digests = await shownDigests(principal, server.database);
  const context = { ids, query, body, request, principal, digests, whenOver };
  if (action === null) {
    await requireScope(server.database, principal.scope, ids, of);
    return responseOf(await handler(context, server), status, context);
  }
  const act = describeAction(request, principal, action, ids, bytes);
  try {
    await requireScope(server.database, principal.scope, ids, of);
    const { database, written } = withAudit(server.database, act, server.now);
    const model = await handler(context, { ...server, database });
    // writes the audit entry of an action that writes nothing itself
    if (written.count === 0) await database.writes.run(async () => undefined);
    return await responseOf(model, status, context);
  } catch (error) {
    await server.refusals.record(act, error);
    throw error;
  }
}

const LOG_ROUTE = /\/agents\/:agentId\/log(s|-level)\b/;

/** Routes whose responses can't be redacted. */
const UNREDACTED_ROUTES = /\/agui\//;

/** A redacted sender only gets responses marked as redacted, so a route that forgets to redact fails closed. */
async function responseOf(
  model: object,
  status: ApiRoute['status'],
  { principal, digests }: Pick<RequestContext, 'principal' | 'digests'>,
): Promise<Response> {
  if (model instanceof Response) {
    if (!principal.redacts || isRedacted(model)) return model;
    await model.body?.cancel();
    throw cannotRedact();
  }
  return jsonResponse(await redactResponse(model, principal, digests), status);
}

function cannotRedact(): AppError {
  return new AppError(
    'forbidden',
    'This response can’t be redacted, and this credential gets only redacted ones. Use a credential that may see secrets.',
  );
}

function readQuery(url: string, schema: Schema): unknown {
  const parameters = new URL(url).searchParams;
  const lists = Object.fromEntries([...new Set(parameters.keys())].map((name) => [name, parameters.getAll(name)]));
  const parsed = schema.safeParse(lists);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const name = unknown ?? String(issue?.path[0]);
  const text = parameters.get(name) ?? '';
  const known = Object.keys(schema.shape).join(', ');
  const message =
    unknown !== undefined
      ? `${JSON.stringify(name)} is not a parameter of this route. Use ${known}, or omit it.`
      : `${name}=${JSON.stringify(text.slice(0, MAX_QUOTED))} is invalid: it must be ${issue?.message}.`;
  const details = { ...choicesOf(schema, [name]), [name]: text.slice(0, MAX_QUOTED) };
  throw new AppError('invalid_argument', message, { details });
}

/** Maximum length of a quoted invalid argument. */
const MAX_QUOTED = 1_000;

/**
 * Parses a body and makes its strings well-formed. An empty body counts as `{}`, because some requests have everything
 * in the path. Yields to the event loop, because a body may hold as many values as a record.
 */
async function readJson(bytes: Uint8Array, schemas: readonly Schema[]): Promise<unknown> {
  const yielder = new Yielder();
  const input = bytes.byteLength === 0 ? {} : parseJson(bytes);
  const schema = schemaFor(input, schemas);
  await yielder.yieldIfDue();
  const parsed = schema.safeParse(input);
  await yielder.yieldIfDue();
  if (parsed.success) {
    const data = wellFormed(parsed.data);
    await yielder.yieldIfDue();
    return data;
  }
  const fields = Object.keys(schema.shape);
  const choices = choicesOf(schema, fields);
  const named = fields.map((name) => (`${name}s` in choices ? `${name} (${choices[`${name}s`]?.join(', ')})` : name));
  const message = `${describeIssue(parsed.error)}. The fields are: ${named.join(', ')}.`;
  throw new AppError('invalid_argument', message, { details: { fields, ...choices } });
}

/** The last schema with a required field in the body, otherwise the first. */
function schemaFor(input: unknown, schemas: readonly Schema[]): Schema {
  const has = (name: string) => typeof input === 'object' && input !== null && name in input;
  const isIntended = ({ shape }: Schema) =>
    Object.entries(shape).some(([name, field]) => has(name) && !z.safeParse(field, undefined).success);
  return schemas.findLast(isIntended) ?? (schemas[0] as Schema);
}

/** Allowed values of enum fields: `levels` for `level`. */
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

export type Found =
  | { kind: 'route'; route: Route; ids: Record<string, string> }
  | { kind: 'other-method'; allow: string; isOpen: boolean }
  | { kind: 'nothing' };

const router = new RegExpRouter<Route>();
for (const route of ROUTES) router.add(route.method, route.pattern, route);

/**
 * @param pathname percent-encoded; ids are returned decoded
 * @throws AppError `malformed` for an invalid encoding
 */
export function findRoute(method: string, pathname: string): Found {
  const [[[route, at] = []], parts = []] = router.match(method, pathname);
  if (route !== undefined && at !== undefined) {
    const ids = Object.entries(at).map(([name, index]) => [name, decoded(String(parts[Number(index)]))]);
    return { kind: 'route', route, ids: Object.fromEntries(ids) };
  }
  const others = METHODS.flatMap((each) => router.match(each, pathname)[0].map(([other]) => other));
  if (others.length === 0) return { kind: 'nothing' };
  const isOpen = others.every(({ access }) => access === 'open');
  return { kind: 'other-method', allow: others.map((other) => other.method).join(', '), isOpen };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new AppError(
      'malformed',
      'The path is not valid UTF-8 in percent-encoding. Encode each part with encodeURIComponent.',
    );
  }
}
