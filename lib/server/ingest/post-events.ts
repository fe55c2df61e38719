import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { AppError } from '@interlude/protocol/errors';
import { wellFormed } from '@interlude/protocol/json';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { Pace } from '@/db/next-turn';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { credentialEnded } from '@/lib/server/access/authenticate';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { commitApart, isRefusal } from './commit-apart';
import { type Batch, type CommitOutcome, commitBatch } from './commit-batch';
import type { GapTally } from './gap-tally';
import { IngestWatch } from './ingest-watch';
import { judgeRecord, tooManyValues } from './judge-record';
import { parseBatch } from './parse-batch';
import { parseRequest } from './parse-request';
import { readBody } from './read-body';
import { scopeOf } from './scope-of';
import { foreignProducer, requireProducer, withinReach } from './sender-reach';
import { knownAliases, rememberAliases, renamed } from './session-aliases';
import { withdrawAnswers } from './withdraw-answers';

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
  { request, principal, whenOver }: Pick<RequestContext, 'request' | 'principal' | 'whenOver'>,
  server: IngestServer,
): Promise<Response> {
  const { scope: reach } = principal;
  // it may take minutes to come
  let isOver = false;
  const stop = whenOver(() => {
    isOver = true;
  });
  const body = await readBody(request).finally(stop);
  if (isOver) throw credentialEnded();
  const pace = new Pace();
  const { value, hasHalves, tooWide } = await parseBatch(body, pace);
  const { producer: source, records: raws } = await parseRequest(value, pace);
  if (source.id === SERVER_PRODUCER_ID) {
    throw new AppError('malformed', `producer.id: ${SERVER_PRODUCER_ID} is the server's own. Choose another.`);
  }
  const mayBeLarge = body.byteLength > MAX_RECORD_BYTES;
  requireProducer(reach, source);
  // Judged as it was sent, because an id with half a character is refused, and mended before any of it is kept.
  await pace.rest();
  const judged = await pace.map(raws, (raw) => ({
    raw,
    judgement: withinReach(principal, raw, tooWide.has(raw) ? tooManyValues(raw) : judgeRecord(raw, mayBeLarge)),
  }));
  const records = hasHalves ? await pace.map(judged, (record) => wellFormed(record)) : judged;
  await pace.rest();
  const { database } = server;
  const aliasSecret = reach.kind === 'everything' ? null : await serverKey(database, 'session-alias');
  const scope = await scopeOf(source, records);
  const sent = { source, records, scope, reach, aliasSecret, receivedAt: server.now() };
  const batch = await renamed(sent, knownAliases(database, scope));
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
      return writes.run((transaction) => commitApart(transaction, batch, gaps, take), about);
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
