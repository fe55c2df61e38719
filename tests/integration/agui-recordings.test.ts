import type { TranscriptPage } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { playRecorded, recordedLines } from '../support/recordings';
import { inProcessServer, type ServerTarget } from '../support/server-target';

let target: ServerTarget;
beforeAll(async () => {
  target = await inProcessServer();
});
afterAll(() => target.close());

/** The texts of a recording as its transcript shows them. */
async function textsOf(name: string, perRequest: number): Promise<string[]> {
  const id = `${name}-${perRequest}`;
  const recorded = playRecorded('agui', recordedLines('agui', name), null);
  const records = recorded.map(({ occurredAt, event }, index) =>
    record(index + 1, { agentId: id, sessionId: id, occurredAt, event }),
  );
  for (let index = 0; index < records.length; index += perRequest)
    await ingest(target, records.slice(index, index + perRequest), 1, id);
  const page: TranscriptPage = await (await target.get(`/api/v1/sessions/${id}/transcript`)).json();
  return page.turns.flatMap(({ items }) => items.flatMap((item) => (item.kind === 'message' ? [item.text] : [])));
}

describe.each([
  ['two-messages-interleaved', ['go r1', 'left hand', 'right foot']],
  ['snapshot-with-other-ids', ['go r1', 'Streamed answer.']],
])('the AG-UI recording %s', (name, texts) => {
  test.each([1, 1_000])('shows each message once, %i records per request', async (perRequest) => {
    expect(await textsOf(name, perRequest)).toEqual(texts);
  });
});
