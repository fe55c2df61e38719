import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Item, MessageItem } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { custom, runEnds, runStarts, says, told, userSays } from './session-story';

const queued = (id: string) => says(id, 'Hi', 'user', { metadata: { interlude: { delivery: 'queued' as const } } });
const delivery = (message_id: string, state: string, reason?: string) =>
  custom('message:delivery', { message_id, delivery: state, ...(reason === undefined ? {} : { reason }) });
const command = (state: string, more: Record<string, unknown> = {}) =>
  custom(`command:${state}`, { command_id: 'c1', type: 'interrupt', ...more });
const interrupted: AgUiEvent[] = [{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }];

function itemsOf(...chapters: AgUiEvent[][]): Item[] {
  return told(...chapters)
    .page()
    .turns.flatMap((turn) => turn.items);
}
const message = (...chapters: AgUiEvent[][]) =>
  itemsOf(...chapters).find((item): item is MessageItem => item.kind === 'message' && item.id === 'u1');

describe('a queued message', () => {
  it.each([
    ['waits', [], 'queued'],
    ['is delivered when its runner says so', [delivery('u1', 'delivered')], 'delivered'],
    ['failed when its runner says so', [delivery('u1', 'failed', 'gone')], 'failed'],
    [
      'is seen once a turn names it',
      [delivery('u1', 'delivered'), runStarts('r1', { userMessageIds: ['u1'] })],
      'seen',
    ],
    [
      'is seen by a turn that names it at its end',
      [runStarts('r1', { userMessageIds: [] }), runEnds('r1', { userMessageIds: ['u1'] })],
      'seen',
    ],
    [
      'is seen, whatever is said of its way afterwards',
      [runStarts('r1', { userMessageIds: ['u1'] }), delivery('u1', 'failed')],
      'seen',
    ],
    ['still waits after its runner has echoed it', [userSays('u1', 'Hi')], 'queued'],
  ] as [string, AgUiEvent[][], string][])('%s', (_, chapters, state) => {
    expect(message(queued('u1'), ...chapters)).toMatchObject({ text: 'Hi', delivery: state, streaming: false });
  });

  it('says why it failed', () => {
    expect(message(queued('u1'), delivery('u1', 'failed', 'gone'))?.deliveryReason).toBe('gone');
  });

  it('is not answered by an earlier run that names no message', () => {
    const [waiting] = told(queued('u1'), [{ type: 'RUN_STARTED', runId: 'r1' }]).page().turns;
    expect(waiting?.kind).toBe('none');
    const turns = told(queued('u1'), delivery('u1', 'delivered'), [{ type: 'RUN_STARTED', runId: 'r1' }]).page().turns;
    expect(turns.map((turn) => turn.id)).toEqual(['r1']);
  });

  it('ignores deliveries of unknown messages', () => {
    expect(message(userSays('u1', 'Hi'), runStarts('r1', { userMessageIds: ['u1'] }))?.delivery).toBeNull();
  });
});

describe('a command', () => {
  it('is one line with its outcome, also after its turn', () => {
    const turns = told(runStarts('r1'), command('queued'), interrupted, command('done')).page().turns;
    expect(turns).toHaveLength(1);
    expect(turns[0]?.items).toMatchObject([
      { id: 'command:c1', text: 'The interrupt reached the agent.', tone: 'info' },
    ]);
  });

  it('says why it failed', () => {
    const stop = { type: 'task.stop', task_id: 't1' };
    expect(itemsOf(command('queued', stop), command('failed', { ...stop, reason: 'gone' }))).toMatchObject([
      { text: 'A task could not be stopped: t1 (gone).', tone: 'error', command: { taskId: 't1', state: 'failed' } },
    ]);
  });

  it.each([
    ['queued', {}, 'The session was asked to end.'],
    ['done', {}, 'The runner began to end the session.'],
    ['failed', { reason: 'it runs in a terminal' }, 'The session could not be ended (it runs in a terminal).'],
  ])('shows a session end that is %s', (state, more, text) => {
    expect(itemsOf(command(state, { type: 'session.end', ...more }))).toMatchObject([{ kind: 'notice', text }]);
  });

  it('is done if it completes after being given up', () => {
    const late = [
      command('queued'),
      command('failed', { reason: 'no runner took it' }),
      runStarts('r1'),
      command('done'),
    ];
    expect(itemsOf(...late)).toMatchObject([
      { text: 'The agent could not be interrupted (no runner took it).' },
      { text: 'The interrupt reached the agent.' },
    ]);
  });

  it('appears on the card of the request it answers', () => {
    const answer = { type: 'permission.decision', request_id: 'q1', behavior: 'allow' };
    const opened = custom('request:opened', { request_id: 'q1' });
    expect(itemsOf(runStarts('r1'), opened, command('queued', answer), command('done', answer))).toMatchObject([
      { kind: 'request', outcome: null, answer: { commandId: 'c1', behavior: 'allow', state: 'done' } },
    ]);
  });

  describe('sent twice by two people', () => {
    const answer = (state: string, command_id: string, behavior: string, more = {}) =>
      custom(`command:${state}`, { command_id, type: 'permission.decision', request_id: 'q1', behavior, ...more });
    const first = [
      ...runStarts('r1'),
      ...custom('request:opened', { request_id: 'q1' }),
      ...answer('queued', 'c1', 'allow'),
    ];
    const shown = (...chapters: AgUiEvent[][]) => itemsOf(first, ...chapters).find((item) => item.kind === 'request');

    it('keeps the first answer on the card and gives the second a line', () => {
      const second = [answer('done', 'c1', 'allow'), answer('queued', 'c2', 'deny')];
      expect(shown(...second)).toMatchObject({ answer: { commandId: 'c1', behavior: 'allow', state: 'done' } });
      const failed = [
        ...second,
        answer('failed', 'c2', 'deny', { reason: 'the agent does not wait for this any more' }),
      ];
      expect(shown(...failed)).toMatchObject({ answer: { commandId: 'c1', behavior: 'allow', state: 'done' } });
      expect(itemsOf(first, ...failed).at(-1)).toMatchObject({
        kind: 'notice',
        text: 'The decision did not reach the agent (the agent does not wait for this any more).',
      });
    });

    it('shows the second if the first failed', () => {
      const second = [answer('failed', 'c1', 'allow', { reason: 'gone' }), answer('queued', 'c2', 'deny')];
      expect(shown(...second)).toMatchObject({ answer: { commandId: 'c2', behavior: 'deny', state: 'queued' } });
    });
  });

  it('leaves a line only for a failed answer', () => {
    const answer = { type: 'permission.decision', request_id: 'q1', behavior: 'allow' };
    const resolved = [
      runStarts('r1'),
      custom('request:opened', { request_id: 'q1' }),
      custom('request:resolved', { request_id: 'q1' }),
    ];
    expect(itemsOf(...resolved, command('done', answer)).map((item) => item.kind)).toEqual(['request']);
    const later = [...resolved, runEnds('r1'), runStarts('r2'), command('failed', answer)];
    expect(itemsOf(...later).map((item) => item.kind)).toEqual(['request', 'notice']);
  });
});
