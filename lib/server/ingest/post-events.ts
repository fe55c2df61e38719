import { type CommandEventValue, CUSTOM } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { type IngestAnswer, SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { wellFormed } from '@interlude/protocol/well-formed';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
import type { Asked } from '@/lib/server/access/asked';
import { overMeanwhile } from '@/lib/server/access/authenticate';
import type { ServerContext } from '@/lib/server/access/server-context';
import type { Ended, Telemetry } from '@/lib/server/telemetry/telemetry';
import { appendFacts } from './append-facts';
import { authorizeProducer, authorizeRecord, foreignProducer } from './authorize-sender';
import { collectScope } from './collect-scope';
import { type Batch, type CommitOutcome, commitBatch, commitInParts, isRefusal } from './commit-batch';
import { parseBatch } from './parse-batch';
import { parseRequest } from './parse-request';
import { readBody } from './read-body';
import { knownAliases, rememberAliases, renameSessions } from './session-aliases';
import type { Opening } from './stamp-requests';
import { tooManyValues, validateRecord } from './validate-record';

export interface IngestServer extends ServerContext {
  gaps: GapTally;
}

/**
 * `POST /events`: takes what an outbox sends, exactly once and in order, and answers when it is on disk.
 *
 * @returns 200 with an IngestAnswer
 * @throws AppError if the body or the protocol refuses it; then nothing of the request is stored
 * @see PROTOCOL.md, Ingest
 */
export async function postEvents(
  { request, principal, whenOver }: Pick<Asked, 'request' | 'principal' | 'whenOver'>,
  server: IngestServer,
): Promise<Response> {
  const { scope: reach } = principal;
  // it may take minutes to come
  let isOver = false;
  const stop = whenOver(() => {
    isOver = true;
  });
  const body = await readBody(request).finally(stop);
  if (isOver) throw overMeanwhile();
  const yielder = new Yielder();
  const { value, hasHalves, tooWide } = await parseBatch(body, yielder);
  const { producer: source, records: raws } = await parseRequest(value, yielder);
  if (source.id === SERVER_PRODUCER_ID) {
    throw new AppError('malformed', `producer.id: ${SERVER_PRODUCER_ID} is the server's own. Choose another.`);
  }
  const mayBeLarge = body.byteLength > MAX_RECORD_BYTES;
  authorizeProducer(reach, source);
  // Judged as it was sent, because an id with half a character is refused, and mended before any of it is kept.
  await yielder.rest();
  const judged = await yielder.map(raws, (raw) => ({
    raw,
    validation: authorizeRecord(
      principal,
      raw,
      tooWide.has(raw) ? tooManyValues(raw) : validateRecord(raw, mayBeLarge),
    ),
  }));
  const records = hasHalves ? await yielder.map(judged, (record) => wellFormed(record)) : judged;
  await yielder.rest();
  const { database } = server;
  const aliasSecret = reach.kind === 'everything' ? null : await serverKey(database, 'session-alias');
  const scope = await collectScope(source, records);
  const sent = { source, records, scope, reach, aliasSecret, receivedAt: server.now() };
  const batch = await renameSessions(sent, knownAliases(database, scope));
  const outcome = await commit(server, batch, request, body);
  if (outcome.kind === 'answered') rememberAliases(database, outcome.sessionByAlias);
  return toAnswer(outcome, batch, raws[0]?.seq ?? 0);
}

async function commit(
  server: IngestServer,
  batch: Batch,
  request: Request,
  body: Uint8Array<ArrayBuffer>,
): Promise<CommitOutcome> {
  const { source, scope } = batch;
  const tally = server.gaps;
  const gaps = tally.count(source.id);
  const { writes } = server.database;
  const keys = [`producer:${source.id}` as const, ...[...scope.agentIds].map((id) => `agent:${id}` as const)];
  const about = { bytes: body.byteLength, keys };
  const watch =
    server.telemetry?.ingested === undefined ? null : new IngestWatch(server.telemetry, batch, request, body);
  const outcome = await writes
    .run((transaction) => {
      watch?.begin();
      return take(transaction, batch, gaps);
    }, about)
    .catch((error) => {
      if (!isRefusal(error)) throw error;
      serverLog('warn', 'a request is refused as a whole, and taken in parts', { error });
      return writes.run((transaction) => commitInParts(transaction, batch, gaps, take), about);
    })
    .catch((error) => {
      watch?.end(null);
      throw error;
    });
  watch?.end(outcome);
  if (outcome.kind === 'answered') tally.subtract(source.id, gaps);
  // An outbox that only asks what the server expects is at no fault.
  if (outcome.kind === 'gap' && batch.records[0]?.raw.kind !== 'probe') tally.add(source.id);
  return outcome;
}

async function take(transaction: WriteTransaction, batch: Batch, gaps: number): Promise<CommitOutcome> {
  const committed = await commitBatch(transaction, batch, gaps);
  if (committed.kind === 'answered') await withdrawAnswers(transaction, committed.openings, batch.receivedAt);
  return committed;
}

/** The answer is too small for a compressor, which Next would otherwise start for each one. */
const ANSWER_HEADERS = { 'cache-control': 'no-store, no-transform' };

function toAnswer(
  outcome: CommitOutcome,
  { source, receivedAt: now }: Pick<Batch, 'source' | 'receivedAt'>,
  firstSeq: number,
): Response {
  switch (outcome.kind) {
    case 'answered':
      return Response.json(outcome.answer, { headers: ANSWER_HEADERS });
    case 'gap':
      throw new AppError(
        'sequence_gap',
        `The next record of this producer is ${outcome.expectedSeq}, but the request begins with ${firstSeq}. Send from ${outcome.expectedSeq} on.`,
        { details: { expectedSeq: outcome.expectedSeq } },
      );
    case 'foreign':
      throw foreignProducer(source.id);
    case 'ahead':
      throw new AppError(
        'epoch_ahead',
        `producer.epoch: ${source.epoch} is ahead of the server's clock (${now}). Correct this machine's clock, or start a new outbox with an epoch above currentEpoch and not after now.`,
        { details: { now, currentEpoch: outcome.currentEpoch } },
      );
    case 'fenced':
      throw new AppError(
        'stale_epoch',
        `A newer outbox of this producer has written (epoch ${outcome.currentEpoch}). Stop sending from this one.`,
        { details: { currentEpoch: outcome.currentEpoch } },
      );
  }
}

/** Beyond this many producers with an open gap, the oldest counts are forgotten: they are only statistics. */
const MAX_PRODUCERS = 10_000;

/**
 * Counts how often each producer was refused for a gap. A refusal stores nothing, so the count waits in memory and goes
 * to disk with the next batch that is taken.
 */
export class GapTally {
  readonly #counts = new Map<string, number>();

  count(producerId: string): number {
    return this.#counts.get(producerId) ?? 0;
  }

  add(producerId: string): void {
    this.#counts.set(producerId, this.count(producerId) + 1);
    if (this.#counts.size > MAX_PRODUCERS) this.#counts.delete(this.#counts.keys().next().value as string);
  }

  /** Takes off what has been written. */
  subtract(producerId: string, written: number): void {
    const left = this.count(producerId) - written;
    if (left > 0) this.#counts.set(producerId, left);
    else this.#counts.delete(producerId);
  }
}

/** Measures what becomes of a batch, for those who are told. */
class IngestWatch {
  readonly #telemetry: Telemetry;
  readonly #batch: Batch;
  readonly #traceparent: string | null;
  readonly #bytes: number;
  readonly #startedAt = performance.now();
  #waitedMs: number | null = null;

  constructor(telemetry: Telemetry, batch: Batch, { headers }: Request, body: Uint8Array) {
    this.#telemetry = telemetry;
    this.#batch = batch;
    this.#traceparent = headers.get('traceparent');
    this.#bytes = body.byteLength;
  }

  /** Its turn to write has come. It may come again. */
  begin(): void {
    this.#waitedMs ??= performance.now() - this.#startedAt;
  }

  /** @param outcome null if it failed */
  end(outcome: CommitOutcome | null): void {
    const { source, records, receivedAt } = this.#batch;
    const answer = outcome?.kind === 'answered' ? outcome.answer : null;
    if (answer !== null && this.#telemetry.ended !== undefined) {
      const ended = endsIn(records, answer);
      if (ended.length > 0) this.#telemetry.ended(ended);
    }
    const newest = records.at(-1)?.validation;
    const occurredAt = newest?.isValid === true && 'occurredAt' in newest.record ? newest.record.occurredAt : null;
    const tookMs = performance.now() - this.#startedAt;
    this.#telemetry.ingested?.({
      producerId: source.id,
      records: records.length,
      outcome:
        answer === null
          ? null
          : { accepted: answer.accepted, duplicates: answer.duplicates, rejected: answer.rejected.length },
      kind: outcome?.kind ?? 'failed',
      bytes: this.#bytes,
      receivedAt,
      waitedMs: this.#waitedMs ?? tookMs,
      tookMs,
      ageMs: occurredAt === null ? null : Math.max(receivedAt - occurredAt, 0),
      traceparent: this.#traceparent,
    });
  }
}

/** What is told to have ended by what was accepted. A batch that is sent again tells nothing. */
function endsIn(records: Batch['records'], { ackedSeq, accepted, rejected }: IngestAnswer): Ended[] {
  const told = ackedSeq - accepted - rejected.length;
  const refused = new Set(rejected.map(({ seq }) => seq));
  return records.flatMap(({ raw, validation }): Ended[] => {
    if (raw.seq <= told || refused.has(raw.seq) || !validation.isValid) return [];
    const { record } = validation;
    if (record.kind !== 'event') return [];
    const { agentId, sessionId, occurredAt, event } = record;
    const about = { agentId, sessionId, occurredAt };
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
      return [{ ...about, kind: 'turn', id: textOf(event.runId) }];
    }
    if (event.type !== 'CUSTOM' || (event.name !== CUSTOM.taskCompleted && event.name !== CUSTOM.taskUpdated))
      return [];
    const id = textOf(fieldsOf(event.value).task_id);
    return id === null ? [] : [{ ...about, kind: 'task', id }];
  });
}

const REASON = 'the agent asks anew under the same id: read what it asks now';

/**
 * Gives up the answers that are still on their way to an earlier request with the same id: the id was opened again, with
 * other input or after it was resolved. They are no longer sent, and the transcript says so.
 *
 * An answer that was already sent may have reached the agent before it asked anew. So it is `expired`, not `failed`: if
 * its runner says that it acted on it, that stands.
 */
async function withdrawAnswers(
  transaction: WriteTransaction,
  openings: readonly Opening[],
  now: number,
): Promise<void> {
  if (openings.length === 0) return;
  const digests = new Map(
    openings.map(({ sessionId, requestId, digest }) => [requestKey(sessionId, requestId), digest]),
  );
  const agentIds = [...new Set(openings.map(({ agentId }) => agentId))];
  // An agent has few open commands, and they have an index of their own.
  const { rows } = await transaction.execute({
    sql: `SELECT id, agent_id, session_id, type, body, delivery_count FROM commands
          WHERE agent_id IN (SELECT value FROM json_each(?)) AND state IN ('queued', 'delivered')
            AND type IN ('permission.decision', 'question.answer') ORDER BY position`,
    args: [JSON.stringify(agentIds)],
  });
  for (const row of rows) {
    const sessionId = String(row.session_id);
    const body = JSON.parse(String(row.body)) as (Command & { type: 'permission.decision' })['body'];
    const digest = digests.get(requestKey(sessionId, body.requestId));
    if (digest === undefined || digest === body.digest) continue;
    const value: CommandEventValue = {
      command_id: String(row.id),
      type: String(row.type) as Command['type'],
      request_id: body.requestId,
      ...(body.digest === undefined ? {} : { digest: body.digest }),
      reason: REASON,
    };
    await appendFacts(transaction, now, [
      { agentId: String(row.agent_id), sessionId, event: { type: 'CUSTOM', name: CUSTOM.commandFailed, value } },
    ]);
    await transaction.execute({
      sql: `UPDATE commands SET state = iif(delivery_count > 0, 'expired', 'failed'), reason = ?, lease_until = NULL
            WHERE id = ?`,
      args: [REASON, String(row.id)],
    });
  }
}

function requestKey(sessionId: string, requestId: string): string {
  return JSON.stringify([sessionId, requestId]);
}
