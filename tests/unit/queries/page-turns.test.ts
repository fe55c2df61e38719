import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { jsonResponse } from '@/lib/server/queries/json-response';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { alwaysYield } from '../../support/event-loop';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

let target: InProcessTarget;
beforeEach(async () => {
  target = await inProcessTarget();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await target.close();
});

const asked = (at: number): AgUiEvent[] => [
  { type: 'CUSTOM', name: 'request:opened', value: { request_id: `q${at}`, tool_name: 'Bash', input: { at } } },
];
const called = (at: number): AgUiEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId: `c${at}`, toolCallName: 'Bash' },
  { type: 'TOOL_CALL_ARGS', toolCallId: `c${at}`, delta: `{"at":${at}}` },
];

async function tell(...events: AgUiEvent[]): Promise<void> {
  const all = [{ type: 'RUN_STARTED', runId: 'r' }, ...events];
  await ingest(
    target,
    all.map((event, index) => record(index + 1, { event })),
  );
}

const page = async () =>
  jsonResponse((await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 })) ?? {});

describe('a page of slow items', () => {
  test.each([
    ['a request is read and written', asked, 2],
    ['the pieces of a call are read, its arguments, and it is written', called, 4],
  ])('yields between its items: %s', async (_what, told, steps) => {
    const few = 20;
    await tell(...Array.from({ length: few }, (_, index) => told(index)).flat());
    const turns = alwaysYield();
    await page();
    expect(turns()).toBeGreaterThanOrEqual(steps * few);
  });

  test('equals the page read in one piece', async () => {
    await tell(...asked(1), ...called(2));
    const model = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 50 });
    expect(await (await page()).text()).toBe(JSON.stringify(model));
  });

  test('keeps deep arguments as text', async () => {
    const delta = '['.repeat(9_000) + ']'.repeat(9_000);
    await tell({ type: 'TOOL_CALL_START', toolCallId: 'c' }, { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta });
    const { turns } = await (await page()).json();
    expect(turns[0].items).toMatchObject([{ args: null, argsText: delta }]);
  });
});
