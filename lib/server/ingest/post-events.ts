import type { CommandEventValue } from '@interlude/protocol/ag-ui';
import type { Command } from '@interlude/protocol/commands';
import { type IngestResponse, SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { wellFormed } from '@interlude/protocol/json';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { Yielder } from '@/db/yield-to-loop';
import { credentialEnded } from '@/lib/server/access/authenticate';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
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
 * `POST /events`: stores the records of an outbox exactly once, in order, and responds once they are on disk.
 *
 * ```
 *  body ─► parse ─► authorize + validate each record ─► rename aliased sessions
 *                                                          │ one write transaction
 *          read what the batch may touch ─► check producer ─► plan ─► append rows + read models
 * ```
 *
 * Ordering: records are planned in `seq` order, and each row takes the next position. Batches with a key in common (the
 * producer, an agent) run in the order they arrived.
 * Failure: a request that throws stores nothing. A record that can't be stored is quarantined and acknowledged, so it
 * does not block later ones. A batch that the database refuses as a whole is committed again in parts.
 *
 * @returns 200 with an IngestResponse
 * @throws AppError for an invalid body or sequence
 * @see PROTOCOL.md, Ingest
 */
export async function postEvents(
  { request, principal, whenOver }: Pick<RequestContext, 'request' | 'principal' | 'whenOver'>,
  server: IngestServer,
): Promise<Response> {
  const { scope: reach } = principal;
  // The credential may end while the body arrives, which may take minutes.
  let isOver = false;
  const stop = whenOver(() => {
    isOver = true;
  });
  const body = await readBody(request).finally(stop);
  if (isOver) throw credentialEnded();
  const yielder = new Yielder();
  const { value, hasHalves, tooWide } = await parseBatch(body, yielder);
  const { producer: source, records: raws } = await parseRequest(value, yielder);
  if (source.id === SERVER_PRODUCER_ID) {
    throw new AppError('malformed', `producer.id: ${SERVER_PRODUCER_ID} is reserved for the server. Choose another.`);
  }
  const mayBeLarge = body.byteLength > MAX_RECORD_BYTES;
  authorizeProducer(reach, source);
  // Repairs strings after validation, because half a surrogate pair makes an id invalid.
  await yielder.yieldIfDue();
  const validated = await yielder.map(raws, (raw) => ({
    raw,
    validation: authorizeRecord(
      principal,
      raw,
      tooWide.has(raw) ? tooManyValues(raw) : validateRecord(raw, mayBeLarge),
    ),
  }));
  const records = hasHalves ? await yielder.map(validated, (record) => wellFormed(record)) : validated;
  await yielder.yieldIfDue();
  const { database } = server;
  const aliasSecret = reach.kind === 'everything' ? null : await serverKey(database, 'session-alias');
  const scope = await collectScope(source, records);
  const sent = { source, records, scope, reach, aliasSecret, receivedAt: server.now() };
  const batch = await renameSessions(sent, knownAliases(database, scope));
  const outcome = await commit(server, batch, request, body);
  if (outcome.kind === 'answered') rememberAliases(database, outcome.sessionByAlias);
  return toIngestResponse(outcome, batch, raws[0]?.seq ?? 0);
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
  const options = { bytes: body.byteLength, keys };
  const telemetry = server.telemetry?.ingested === undefined ? null : server.telemetry;
  const measure = telemetry && new IngestMeasurement(telemetry, batch, request, body);
  const outcome = await writes
    .run((transaction) => {
      measure?.begin();
      return commitAndWithdraw(transaction, batch, gaps);
    }, options)
    .catch((error) => {
      if (!isRefusal(error)) throw error;
      serverLog('warn', 'the database refused a batch: committing it in parts', { error });
      return writes.run((transaction) => commitInParts(transaction, batch, gaps, commitAndWithdraw), options);
    })
    .catch((error) => {
      measure?.end(null);
      throw error;
    });
  measure?.end(outcome);
  if (outcome.kind === 'answered') tally.subtract(source.id, gaps);
  // A probe only queries the expected seq.
  if (outcome.kind === 'gap' && batch.records[0]?.raw.kind !== 'probe') tally.add(source.id);
  return outcome;
}

async function commitAndWithdraw(transaction: WriteTransaction, batch: Batch, gaps: number): Promise<CommitOutcome> {
  const committed = await commitBatch(transaction, batch, gaps);
  if (committed.kind === 'answered') await withdrawAnswers(transaction, committed.openings, batch.receivedAt);
  return committed;
}

/** `no-transform` keeps Next from starting a compressor for each of these small responses. */
const ANSWER_HEADERS = { 'cache-control': 'no-store, no-transform' };

function toIngestResponse(
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

/** Maximum producers with an open gap. Beyond it, the oldest counts are dropped. */
const MAX_PRODUCERS = 10_000;

/** Counts refused gaps per producer in memory. The next accepted batch stores the count. */
export class GapTally {
  readonly #counts = new Map<string, number>();

  count(producerId: string): number {
    return this.#counts.get(producerId) ?? 0;
  }

  add(producerId: string): void {
    this.#counts.set(producerId, this.count(producerId) + 1);
    if (this.#counts.size > MAX_PRODUCERS) this.#counts.delete(this.#counts.keys().next().value as string);
  }

  subtract(producerId: string, written: number): void {
    const left = this.count(producerId) - written;
    if (left > 0) this.#counts.set(producerId, left);
    else this.#counts.delete(producerId);
  }
}

/** Reports a batch's wait and duration, and the turns and tasks that it ended. */
class IngestMeasurement {
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

  /** Call when the transaction starts, also on a retry. */
  begin(): void {
    this.#waitedMs ??= performance.now() - this.#startedAt;
  }

  /** @param outcome null if the commit failed */
  end(outcome: CommitOutcome | null): void {
    const { source, records, receivedAt } = this.#batch;
    const response = outcome?.kind === 'answered' ? outcome.answer : null;
    if (response !== null && this.#telemetry.ended !== undefined) {
      const ended = endedIn(records, response);
      if (ended.length > 0) this.#telemetry.ended(ended);
    }
    const newest = records.at(-1)?.validation;
    const occurredAt = newest?.isValid === true && 'occurredAt' in newest.record ? newest.record.occurredAt : null;
    const tookMs = performance.now() - this.#startedAt;
    this.#telemetry.ingested?.({
      producerId: source.id,
      records: records.length,
      outcome:
        response === null
          ? null
          : { accepted: response.accepted, duplicates: response.duplicates, rejected: response.rejected.length },
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

/** Turns and tasks that newly accepted records ended, without duplicates. */
function endedIn(records: Batch['records'], { ackedSeq, accepted, rejected }: IngestResponse): Ended[] {
  const lastStoredSeq = ackedSeq - accepted - rejected.length;
  const rejectedSeqs = new Set(rejected.map(({ seq }) => seq));
  return records.flatMap(({ raw, validation }): Ended[] => {
    if (raw.seq <= lastStoredSeq || rejectedSeqs.has(raw.seq) || !validation.isValid) return [];
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

const REASON = 'the agent reopened the request with different content: review it again';

/**
 * Withdraws undelivered answers to an earlier request whose id was reopened with other input, or after it was resolved.
 * The transcript records the withdrawal.
 *
 * A delivered answer may have reached the agent before the new request. It becomes `expired`, not `failed`, so a
 * later acknowledgement from the runner still counts.
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
