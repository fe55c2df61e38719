import type { EventEntry } from '@interlude/protocol/projections/placement';
import { expect, it } from 'vitest';
import type { RowFrame } from '@/components/live/row-frame';
import { loadProjections, TranscriptStore } from '@/components/transcript/transcript-store';
import { MemoryLog } from '../support/memory-log';
import { userTurn } from '../support/turn-events';

const frameOf = ({ position, ...entry }: EventEntry): RowFrame => ({
  event: 'session-event',
  id: position,
  data: { sessionId: 's1', agentId: 'a1', seq: 1, ...entry },
});

it('a transcript keeps frames that arrive before its projections, and applies them in order', async () => {
  const log = new MemoryLog();
  log.append(userTurn('r1', 'First question', 'First answer'));
  const store = new TranscriptStore('s1', log.page());
  for (const entry of log.append(userTurn('r2', 'Second question', 'Second answer')))
    store.applyFrames([frameOf(entry)]);
  expect(store.value?.turns).toHaveLength(1);
  await loadProjections();
  for (const entry of log.append(userTurn('r3', 'Third question', 'Third answer'))) store.applyFrames([frameOf(entry)]);
  expect(store.value?.turns).toEqual(log.page().turns);
});
