import { readFileSync } from 'node:fs';
import type { FleetCounts } from '@interlude/protocol/inbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readGauges } from '@/lib/server/telemetry/metrics';
import { AccessStage, bearer, type Headers } from '../../support/access-stage';
import { busyAgent } from '../../support/busy-agent';

const MONITOR = 'a-token-for-whoever-watches-0123';

let stage: AccessStage;
beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_METRICS_TOKEN: MONITOR } });
  await busyAgent(stage, 'a');
  const ended = (exitCode: number) => ({
    ...{ seq: exitCode + 1, kind: 'event', agentId: 'agent-a', sessionId: `exit-${exitCode}`, occurredAt: Date.now() },
    event: { type: 'CUSTOM', name: 'session:ended', value: { exitCode } },
  });
  const body = { producer: { id: 'agent-a/exits', epoch: 1 }, records: [ended(0), ended(1)] };
  await stage.ask('/events', { method: 'POST', body });
});
afterAll(() => stage.close());

/** Every series by name and labels. */
function seriesIn(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

const scrape = async (as: Headers = bearer(MONITOR)) => (await stage.send('/metrics', { as })).text();

describe('/metrics', () => {
  test('needs the metrics token or an admin, and that token opens nothing else', async () => {
    const statusOf = async (path: string, as: Headers) => (await stage.send(path, { as })).status;
    expect(await statusOf('/metrics', {})).toBe(401);
    expect(await statusOf('/metrics', bearer(MONITOR))).toBe(200);
    expect(await statusOf('/metrics', stage.owner)).toBe(200);
    expect(await statusOf('/metrics', await stage.token({ role: 'viewer' }))).toBe(403);
    expect(await statusOf('/metrics', await stage.token({ agent: 'agent-a' }))).toBe(403);
    for (const path of ['/api/v1/sessions', '/api/v1/me', '/api/v1/cron', '/api/v1/stream?topic=fleet']) {
      expect([path, await statusOf(path, bearer(MONITOR))]).toEqual([path, 403]);
    }
  });

  test('is Prometheus text with each family once and conventional names and units', async () => {
    const response = await stage.send('/metrics', { as: bearer(MONITOR) });
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type] as const);
    expect(new Set(types.map(([name]) => name)).size).toBe(types.length);
    for (const [name, type] of types.filter(([name]) => name.startsWith('interlude_'))) {
      expect(name).toMatch(/^interlude_[a-z_]+$/);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
      expect(text).toContain(`# HELP ${name} `);
    }
    for (const [series, value] of seriesIn(text)) {
      expect(series).toMatch(/^[a-z_]\w*(\{(\w+="[^"\n\\]*",?)+\})?$/);
      expect([series, Number.isNaN(value)]).toEqual([
        series,
        /^nodejs_gc|_eventloop_lag_(min|mean|stddev|max|p)/.test(series) && Number.isNaN(value),
      ]);
    }
  });

  test('reports the fleet like the read models', async () => {
    const series = seriesIn(await scrape());
    const { sessions } = await stage.ask<FleetCounts>('/counts');
    expect(sessions).toMatchObject({ failed: 1, exited: 1 });
    for (const [state, count] of Object.entries(sessions)) {
      expect([state, series.get(`interlude_sessions{state="${state}"}`)]).toEqual([state, count]);
    }
    const inbox = await stage.ask<{ counts: Record<string, number> }>('/inbox');
    for (const [kind, count] of Object.entries(inbox.counts)) {
      expect([kind, series.get(`interlude_inbox_items{kind="${kind}"}`)]).toEqual([kind, count]);
    }
    expect(Object.fromEntries(series)).toMatchObject({
      interlude_agents: 1,
      interlude_tasks_running: 1,
      interlude_replies_owed: 2,
      interlude_commands_open: 1,
      interlude_runners_connected: 0,
      'interlude_stored_records_total{outcome="lost"}': 2,
    });
    expect(series.get('interlude_database_bytes')).toBeGreaterThan(4096);
  });

  test('counts ingest, responses and fan-out without naming agents', async () => {
    const before = seriesIn(await scrape());
    const stream = await stage.stream('/stream?topic=session:work', stage.owner);
    await stream.frame('up-to-date');
    const record = (seq: number) => ({
      seq,
      kind: 'event',
      agentId: 'watched-agent',
      sessionId: 'work',
      occurredAt: Date.now() - 7_200_000,
      event: { type: 'RUN_STARTED', threadId: 'work', runId: `r${seq}` },
    });
    const send = (seqs: number[]) =>
      stage.send('/api/v1/events', {
        method: 'POST',
        body: { producer: { id: 'watched-agent', epoch: 1 }, records: seqs.map(record) },
      });
    expect((await send([1, 2])).status).toBe(200);
    expect((await send([2])).status).toBe(200);
    expect((await send([9])).status).toBe(409);
    await stream.frame('session-event', 2);
    // scrapes within a second share a result
    await expect.poll(async () => seriesIn(await scrape()).get('interlude_subscribers')).toBe(1);
    const text = await scrape();
    const after = seriesIn(text);
    const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    expect(grown('interlude_ingest_records_total{outcome="accepted"}')).toBe(2);
    expect(grown('interlude_ingest_records_total{outcome="duplicate"}')).toBe(1);
    expect(grown('interlude_ingest_batches_total{outcome="answered"}')).toBe(2);
    expect(grown('interlude_ingest_batches_total{outcome="gap"}')).toBe(1);
    expect(grown('interlude_ingest_lag_seconds_bucket{le="3600"}')).toBe(0);
    expect(grown('interlude_ingest_lag_seconds_bucket{le="86400"}')).toBe(3);
    expect(grown('interlude_fanout_rows_total')).toBe(2);
    expect(grown('interlude_fanout_lag_seconds_count')).toBeGreaterThan(0);
    const posts = 'interlude_request_duration_seconds_count{method="POST",route="/api/v1/events",status="200"}';
    expect(grown(posts)).toBe(2);
    expect(text).not.toMatch(/watched-agent|agent-a|session-a|\bwork\b/);
  });

  test('has no series for unknown paths', async () => {
    for (let index = 0; index < 5; index += 1)
      await stage.send(`/api/v1/nothing-${index}`, { method: `MADE-UP-${index}` });
    await expect.poll(scrape).toContain('route="none",status="404"');
    expect(await scrape()).not.toMatch(/nothing-|MADE-UP/);
  });
});

test('reads along indexes, however many events exist', async () => {
  const { reader } = stage.parts.database;
  const asked: string[] = [];
  const listening = {
    ...reader,
    execute: reader.execute.bind(reader),
    batch: (statements: Parameters<typeof reader.batch>[0], mode: 'read') => {
      asked.push(...statements.map((one) => (typeof one === 'string' ? one : one.sql)));
      return reader.batch(statements, mode);
    },
  };
  await readGauges({ reader: listening as typeof reader }, Date.now());
  expect(asked.length).toBeGreaterThan(3);
  const plans = await Promise.all(
    asked.map(async (sql) => {
      const args = sql.includes('?') ? [0] : [];
      const { rows } = await reader.execute({ sql: `EXPLAIN QUERY PLAN ${sql}`, args });
      return rows.map(({ detail }) => String(detail));
    }),
  );
  // only agents, runners and outboxes may be read one row each
  const walks = plans.flat().filter((step) => /^SCAN (?!.*INDEX)/.test(step) && !/subquery|CONSTANT/.test(step));
  expect(walks.sort()).toEqual(['SCAN counter', 'SCAN producers', 'SCAN runners']);
});

describe('the Grafana dashboard', () => {
  const file = new URL('../../../docs/grafana/interlude.json', import.meta.url);
  interface Panel {
    id: number;
    type: string;
    title: string;
    gridPos: { x: number; y: number; w: number; h: number };
    datasource?: { type: string; uid: string };
    targets?: { expr: string; refId: string }[];
  }
  const board = JSON.parse(readFileSync(file, 'utf8')) as {
    title: string;
    uid: string;
    schemaVersion: number;
    panels: Panel[];
    templating: { list: { name: string; type: string; query: string }[] };
    time: { from: string; to: string };
  };

  test('has the series that the Grafana dashboard queries', () => {
    expect(board).toMatchObject({ title: 'Interlude', uid: 'interlude', schemaVersion: expect.any(Number) });
    expect(board.templating.list).toContainEqual(expect.objectContaining({ name: 'datasource', type: 'datasource' }));
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
    for (const { title, type, gridPos, datasource, targets } of board.panels) {
      expect([title, gridPos.x + gridPos.w <= 24 && gridPos.w > 0 && gridPos.h > 0]).toEqual([title, true]);
      if (type === 'row') continue;
      expect([title, datasource?.uid]).toEqual([title, `$\{datasource}`]);
      expect([title, (targets ?? []).length > 0]).toEqual([title, true]);
    }
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  test('queries existing metrics only', async () => {
    const text = await scrape();
    const there = new Set([...text.matchAll(/^([a-z_]\w*)(?:\{| )/gm)].map(([, name]) => name));
    const asked = board.panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => [...expr.matchAll(/\b(?:interlude|process|nodejs)_\w+/g)].map(([name]) => name)),
    );
    expect(asked.length).toBeGreaterThan(20);
    expect([...new Set(asked)].filter((name) => !there.has(name))).toEqual([]);
  });
});
