import { fileURLToPath } from 'node:url';
import { play, readRecording } from '@interlude/runner/cli/recording';
import { OWNER } from '@/lib/server/access/principal';
import { postEvents } from '@/lib/server/ingest/post-events';
import { temporaryDatabase } from '../support/database';
import { benchContext, TOKEN } from './bench-context';
import { note, report } from './report';

/**
 * Database bytes per event after folding: real runs replayed many times as separate sessions. Counts everything ingest
 * writes for events: rows, indexes and read models.
 *
 * `its JSON` is the record as sent by the runner, which operators use for sizing. The rows' overhead is printed below
 * it, relative to the event's AG-UI JSON and to its frame.
 */
const RECORDINGS = [
  'research',
  'test-run',
  'triple',
  'message-while-waking',
  'deploy-watch',
  'long-build',
  'permission',
];
const COPIES = 40;
const RECORDS_PER_REQUEST = 500;

const database = await temporaryDatabase();
const context = benchContext(database);
let sent = { events: 0, bytes: 0 };
let bareBytes = 0;
for (const name of RECORDINGS) {
  const file = fileURLToPath(new URL(`../../lib/runner/cli/demo/recordings/${name}.jsonl`, import.meta.url));
  const recording = await readRecording(file);
  for (let copy = 0; copy < COPIES; copy += 1) {
    const sessionId = crypto.randomUUID();
    const agentId = `${name}-${copy % 4}`;
    const records: (Record<string, unknown> & { event: object })[] = [];
    await play({
      recording,
      sessionId,
      fromLine: 0,
      speed: Number.POSITIVE_INFINITY,
      signal: new AbortController().signal,
      emit: async (events) => {
        for (const one of events) records.push({ seq: records.length + 1, kind: 'event', agentId, ...one });
      },
    });
    for (let from = 0; from < records.length; from += RECORDS_PER_REQUEST) {
      const batch = records.slice(from, from + RECORDS_PER_REQUEST);
      for (const { event } of batch) bareBytes += JSON.stringify(event).length;
      sent = { events: sent.events + batch.length, bytes: sent.bytes + JSON.stringify(batch).length };
      await post(JSON.stringify({ producer: { id: sessionId, epoch: 1 }, records: batch }));
    }
  }
}

const one = async (sql: string) => Object.values((await database.reader.execute(sql)).rows[0] ?? {}).map(Number);
const [kept = 0, payload = 0, frames = 0] =
  await one(`SELECT count(*), sum(octet_length(payload)), sum(octet_length(payload)
  + octet_length(json_object('sessionId', session_id, 'agentId', agent_id, 'seq', seq, 'occurredAt', occurred_at,
    'receivedAt', received_at, 'event', '')) - 2) FROM events`);
const [pages = 0, free = 0] = await one(
  'SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count',
);
const [pageBytes = 0] = await one('PRAGMA page_size');
const bytes = (pages - free) * pageBytes;
const sizes = await database.reader.execute(
  `SELECT s.name AS name, s.tbl_name AS of, d.pgsize AS bytes, d.unused AS unused FROM dbstat AS d
    JOIN sqlite_master AS s ON s.name = d.name WHERE d.aggregate = TRUE ORDER BY d.pgsize DESC LIMIT 24`,
);
for (const row of sizes.rows) {
  note(`  ${row.name} (${row.of}) per event`, Number(row.bytes) / kept, 'bytes');
}
const [ofEvents = 0, unused = 0] = await one(
  `SELECT sum(d.pgsize), sum(d.unused) FROM dbstat AS d JOIN sqlite_master AS s ON s.name = d.name WHERE d.aggregate = TRUE AND s.tbl_name = 'events'`,
);
note('events sent', sent.events, '');
note('events stored, deltas folded', kept, '');
note('bytes per sent event', sent.bytes / sent.events, 'bytes');
note('AG-UI JSON per stored event', payload / kept, 'bytes');
note('frame per stored event', frames / kept, 'bytes');
note('event log per event', ofEvents / kept, 'bytes');
note('  of which unused', unused / kept, 'bytes');
note('database per event', bytes / kept, 'bytes');
note('database, relative to the sent AG-UI JSON', bytes / bareBytes, '×');
note('event log, relative to the frames of stored events', ofEvents / frames, '×');
note('database, relative to the frames of stored events', bytes / frames, '×');
report('database, relative to the sent records', bytes / sent.bytes, '×', { atMost: 1.5 });
await database.dispose();

async function post(body: string): Promise<void> {
  const headers = { authorization: `Bearer ${TOKEN}`, host: '127.0.0.1' };
  const request = new Request('http://127.0.0.1/api/v1/events', { method: 'POST', headers, body });
  const response = await postEvents({ request, principal: OWNER, whenOver: () => () => {} }, context);
  if (response.status !== 200) throw new Error(await response.text());
}
