import { createClient } from '@libsql/client';
import { OWNER } from '@/lib/server/access/principal';
import { postEvents } from '@/lib/server/ingest/post-events';
import { temporaryDatabase } from '../support/database';
import { benchContext, TOKEN } from './bench-context';
import { note, report } from './report';
import { BARE_INSERT, BareRows, type WorkRecord, workload } from './workload';

/**
 * Ingest of 500 records per request through the handler, fsynced and projected, compared with a bare libSQL insert of
 * the same rows: one json_each per transaction into the same table with synchronous=FULL and prepared JSON. Both
 * alternate, so that other load affects both.
 */
const RECORDS_PER_REQUEST = 500;
const WARM_UP_REQUESTS = 40;
const MEASURED_REQUESTS = 200;

const ours = await temporaryDatabase();
const bare = await temporaryDatabase();
const bareClient = createClient({ url: bare.url, concurrency: 1 });
await bareClient.execute('PRAGMA synchronous = FULL');
const context = benchContext(ours);

const records = workload('agent-1', 10);
const bareRows = new BareRows();
const times = { ours: [] as number[], bare: [] as number[] };
for (let round = 0; round < WARM_UP_REQUESTS + MEASURED_REQUESTS; round += 1) {
  const batch = Array.from({ length: RECORDS_PER_REQUEST }, () => records.next().value as WorkRecord);
  const body = JSON.stringify({ producer: { id: 'agent-1', epoch: 1 }, records: batch });
  const rows = bareRows.json(batch);
  const first = round % 2 === 0;
  if (first) await measure('ours', round, () => ingest(body));
  await measure('bare', round, () => insert(rows));
  if (!first) await measure('ours', round, () => ingest(body));
}

const rate = (list: number[]) =>
  (MEASURED_REQUESTS * RECORDS_PER_REQUEST * 1000) / list.reduce((sum, ms) => sum + ms, 0);
note('ingest: through the handler', rate(times.ours), 'records/s');
note('ingest: bare json_each insert', rate(times.bare), 'rows/s');
report('ingest: share of the bare insert', rate(times.ours) / rate(times.bare), '', { atLeast: 0.4 });

bareClient.close();
await Promise.all([ours.dispose(), bare.dispose()]);

async function measure(which: 'ours' | 'bare', round: number, work: () => Promise<void>): Promise<void> {
  const start = performance.now();
  await work();
  if (round >= WARM_UP_REQUESTS) times[which].push(performance.now() - start);
}

async function ingest(body: string): Promise<void> {
  const request = new Request('http://127.0.0.1/api/v1/events', {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, host: '127.0.0.1', 'content-type': 'application/json' },
    body,
  });
  const response = await postEvents({ request: request, principal: OWNER, whenOver: () => () => {} }, context);
  const answer = (await response.json()) as { accepted: number };
  if (answer.accepted !== RECORDS_PER_REQUEST) throw new Error(`accepted ${answer.accepted}`);
}

async function insert(rows: string): Promise<void> {
  const transaction = await bareClient.transaction('write');
  await transaction.execute({ sql: BARE_INSERT, args: [rows] });
  await transaction.commit();
}
