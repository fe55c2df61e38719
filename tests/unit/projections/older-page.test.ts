import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import {
  abandonOlder,
  awaitOlder,
  foldTranscript,
  prependTurns,
  type TranscriptState,
  transcriptFromPage,
} from '@interlude/protocol/projections/transcript';
import { expect, it } from 'vitest';
import { MemoryLog } from '../../support/memory-log';
import { message } from '../../support/turn-events';

const run = (runId: string, userMessageIds: string[]): AgUiEvent[] => [
  { type: 'RUN_STARTED', runId, metadata: { interlude: { turn: 'user', userMessageIds } } },
];
const turn = (runId: string): AgUiEvent[] => [...run(runId, []), { type: 'RUN_FINISHED', runId }];
const queued: AgUiEvent[] = message('u1', 'please deploy', 'user').map((event) =>
  event.type === 'TEXT_MESSAGE_START' ? { ...event, metadata: { interlude: { delivery: 'queued' as const } } } : event,
);
const delivered: AgUiEvent = {
  type: 'CUSTOM',
  name: 'message:delivery',
  value: { message_id: 'u1', delivery: 'delivered' },
};

/** A message in its own turn; only a later turn is loaded. */
function cameIn(...earlier: AgUiEvent[]) {
  const log = new MemoryLog();
  log.append([...turn('r1'), ...earlier, ...queued, ...turn('r2')]);
  const live = awaitOlder(transcriptFromPage(log.page({ limit: 1 })));
  const older = () => log.page({ before: live.turns[0]?.position, limit: 200 });
  return { log, live, older };
}

const textsOf = ({ turns }: Pick<TranscriptState, 'turns'>) =>
  turns.map(({ id, items }) => [id.split(':')[0], ...items.map((item) => ('text' in item ? item.text : item.kind))]);

it('a message claimed during a page request appears in the claiming turn', () => {
  const { log, live, older } = cameIn();
  const page = older();
  const claimed = foldTranscript(live, log.append(run('r3', ['u1'])));
  const whole = prependTurns(claimed, page);
  expect(textsOf(whole)).toEqual([['r1'], ['r2'], ['r3', 'please deploy']]);
  expect([whole.turns, whole.incomplete]).toEqual([log.page().turns, false]);
});

it('a message claimed before the page was read requires a reload', () => {
  const { log, live, older } = cameIn();
  const frames = log.append(run('r3', ['u1']));
  const whole = prependTurns(live, older());
  expect(textsOf(whole)).toEqual([['r1'], ['r2']]);
  expect(foldTranscript(whole, frames).incomplete).toBe(true);
});

it('events for requested turns apply once', () => {
  for (const isPageAhead of [true, false]) {
    const { log, live, older } = cameIn();
    const early = older();
    const frames = log.append([delivered]);
    const whole = isPageAhead
      ? foldTranscript(prependTurns(live, older()), frames)
      : prependTurns(foldTranscript(live, frames), early);
    expect([whole.turns, whole.incomplete]).toEqual([log.page().turns, false]);
  }
});

it('a streaming message continues in the claiming turn', () => {
  const log = new MemoryLog();
  log.append([...turn('r1'), ...message('u1', 'please', 'user').slice(0, 2), ...turn('r2')]);
  const live = awaitOlder(transcriptFromPage(log.page({ limit: 1 })));
  const page = log.page({ before: live.turns[0]?.position });
  const written: AgUiEvent[] = [
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'u1', delta: ' deploy' },
    { type: 'TEXT_MESSAGE_END', messageId: 'u1' },
  ];
  const whole = prependTurns(foldTranscript(live, log.append([...run('r3', ['u1']), ...written])), page);
  expect([whole.turns, whole.incomplete]).toEqual([log.page().turns, false]);
});

it('an unloaded open turn is not appended', () => {
  const log = new MemoryLog();
  log.append([
    ...run('r1', []),
    ...message('a1', 'busy'),
    ...message('u1', 'one', 'user'),
    ...message('u2', 'two', 'user'),
  ]);
  const live = awaitOlder(transcriptFromPage(log.page({ limit: 1 })));
  const page = log.page({ before: live.turns[0]?.position, limit: 1 });
  const folded = foldTranscript(live, log.append([...message('a2', 'done'), { type: 'RUN_FINISHED', runId: 'r1' }]));
  expect(textsOf(folded)).toEqual([['none', 'two']]);
  const middle = awaitOlder(prependTurns(folded, page));
  const whole = prependTurns(middle, log.page({ before: middle.turns[0]?.position }));
  expect([whole.turns, whole.incomplete]).toEqual([log.page().turns, false]);
});

it('a failed or outdated page changes nothing', () => {
  const { log, live, older } = cameIn();
  const page = older();
  const again = transcriptFromPage(log.page({ limit: 1 }));
  expect(prependTurns(again, page)).toBe(again);
  expect(abandonOlder(live)).toMatchObject({ waiting: null, incomplete: false });
  expect(abandonOlder(foldTranscript(live, log.append(run('r3', ['u1'])))).incomplete).toBe(true);
});

it('waiting items precede later ones in a shared turn', () => {
  const log = new MemoryLog();
  const task = (name: string): AgUiEvent => ({ type: 'CUSTOM', name, value: { task_id: 't1', description: 'poll' } });
  log.append([task('task:completed'), { type: 'RUN_ERROR', message: '' }]);
  const live = awaitOlder(transcriptFromPage(log.page({ limit: 1 })));
  const page = log.page({ before: live.turns[0]?.position, limit: 1 });
  const trigger = { kind: 'task' as const, taskIds: ['t1'] };
  const woken = {
    type: 'RUN_STARTED',
    runId: 'r1',
    metadata: { interlude: { turn: 'between-run' as const, trigger } },
  };
  const frames = [...log.append([woken, task('task:started')]), ...log.append(message('m1', 'Again.'))];
  expect(prependTurns(foldTranscript(live, frames), page).turns).toEqual(log.page().turns);
});
