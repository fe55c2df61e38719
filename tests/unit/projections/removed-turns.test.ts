import {
  awaitOlder,
  foldTranscript,
  prependTurns,
  transcriptFromPage,
} from '@interlude/protocol/projections/transcript';
import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryLog } from '../../support/memory-log';
import { userTurn } from '../../support/turn-events';

let log: MemoryLog;
const turn = (id: string) => log.append(userTurn(id, `${id}?`, `${id}.`));
const ids = ({ turns }: { turns: readonly { id: string }[] }) => turns.map(({ id }) => id);

beforeEach(() => {
  log = new MemoryLog();
  for (const id of ['r1', 'r2', 'r3', 'r4']) turn(id);
});

describe('a transcript after removal of its oldest turns', () => {
  test('drops and counts them, and has no older page', () => {
    const before = transcriptFromPage(log.page({ limit: 3 }));
    const live = foldTranscript(before, log.remove(60));
    expect([ids(before), ids(live)]).toEqual([
      ['r2', 'r3', 'r4'],
      ['r3', 'r4'],
    ]);
    expect([before.hasMore, live.hasMore]).toEqual([true, false]);
    expect(live.removed).toEqual(log.page().removed);
  });

  test('shows a turn that reuses a removed id once', () => {
    const before = transcriptFromPage(log.page());
    const live = foldTranscript(before, [...log.remove(60), ...turn('r1')]);
    expect(ids(live)).toEqual(['r3', 'r4', 'r1']);
    expect(live.turns).toEqual(log.page().turns);
  });

  test('drops them from an older page read before the removal', () => {
    const newest = transcriptFromPage(log.page({ limit: 1 }));
    const older = log.page({ before: newest.turns[0]?.position, limit: 2 });
    const waiting = foldTranscript(awaitOlder(newest), log.remove(60));
    const live = prependTurns(waiting, older);
    expect([ids(older), ids(live)]).toEqual([
      ['r2', 'r3'],
      ['r3', 'r4'],
    ]);
    expect([older.hasMore, live.hasMore]).toEqual([true, false]);
  });
});
