import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { describe, expect, test } from 'vitest';
import type { PendingRequest } from '@/lib/server/agui/interrupts';
import type { RunProjectorOptions } from '@/lib/server/agui/run-projector';
import { undeclaredFieldIn } from '@/tests/support/agui-verifier';
import { rejectionOf } from '../../support/agui-verifier';
import { projectAskedRun } from '../../support/run-projector';

function projectorOf(asked: Partial<RunProjectorOptions> = {}) {
  const { projector, stream } = projectAskedRun(asked);
  let position = 0;
  /** Runs by id, with their texts and outcomes. */
  const runs = () => {
    const events = stream.drain();
    expect([rejectionOf(events, '1.0'), undeclaredFieldIn(events)]).toEqual([null, null]);
    const lines: string[] = [];
    for (const { type, runId, delta, name, outcome, code } of events) {
      if (type === 'RUN_STARTED') lines.push(`${runId}:`);
      else if (delta !== undefined) lines.push(`${lines.pop()} ${delta}`);
      else if (type === 'CUSTOM') lines.push(`${lines.pop()} (${name})`);
      else if (type === 'RUN_FINISHED') lines.push(`${lines.pop()} ${(outcome as { type: string }).type}`);
      else if (type === 'RUN_ERROR') lines.push(`${lines.pop() ?? ''} ${code}`);
    }
    return lines;
  };
  const take = (...events: AgUiEvent[]) => {
    for (const event of events) {
      position += 1;
      projector.project({ position: String(position), occurredAt: position, receivedAt: position, event });
    }
    projector.settle();
  };
  return { projector, take, runs };
}

const starts = (runId: string, interlude?: object): AgUiEvent => ({
  type: 'RUN_STARTED',
  runId,
  metadata: { interlude },
});
const ends = (runId: string, userMessageIds?: string[]): AgUiEvent => ({
  type: 'RUN_FINISHED',
  runId,
  metadata: { interlude: userMessageIds === undefined ? {} : { userMessageIds } },
});
const says = (messageId: string, delta: string, interlude?: object): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant', metadata: { interlude } },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId, metadata: { interlude } },
];
const person = (messageId: string, text: string): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'user', metadata: { interlude: { delivery: 'queued' } } },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text },
  { type: 'TEXT_MESSAGE_END', messageId },
];
const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
const asks = (id: string) =>
  custom('request:opened', { request_id: id, kind: 'permission', title: 'May I?', digest: `${id}-digest` });

describe('the answer', () => {
  test('is the next user turn when the agent names no message', () => {
    const { projector, take, runs } = projectorOf();
    take(starts('r1', { turn: 'between-run' }), ...says('m1', 'mine'), ends('r1'));
    expect([runs(), projector.isOver]).toEqual([[], false]);
    take(starts('r2'), ...says('m2', 'yours'), ends('r2'));
    expect([runs(), projector.isOver]).toEqual([['asked: yours success'], true]);
  });

  test('stays pending when a turn turns out to answer another message', () => {
    const { projector, take, runs } = projectorOf();
    take(starts('r1'), ...says('m1', 'theirs'), ends('r1', ['u0']));
    expect(projector.isOver).toBe(false);
    take(starts('r2', { userMessageIds: ['u1'] }), ...says('m2', 'yours'), ends('r2'));
    expect([runs(), projector.isOver]).toEqual([['asked: theirs success', 'r2: yours success'], true]);
  });

  test('may be a text outside turns that replies to the message', () => {
    const { projector, take, runs } = projectorOf();
    take(...says('m1', 'by the way'), ...says('m2', 'yours', { replyTo: ['u1'] }));
    expect([runs(), projector.isOver]).toEqual([['asked: yours success'], true]);
  });

  test('is the next text of an agent without turns', () => {
    const { projector, take, runs } = projectorOf({ isTurnless: true });
    take(...says('m1', 'yours'));
    expect([runs(), projector.isOver]).toEqual([['asked: yours success'], true]);
  });

  test('is not a turn broken off before it named a message', () => {
    const { projector, take, runs } = projectorOf();
    take(starts('r1'), ...says('m1', 'half'), starts('r2', { userMessageIds: ['u1'] }), ends('r2'));
    expect([runs(), projector.isOver]).toEqual([['asked: half cancelled', 'r2: success'], true]);
  });

  test('fails within the open run when delivery fails', () => {
    const { projector, take, runs } = projectorOf({ follows: 'while-tasks-run' });
    take(starts('r0', { userMessageIds: ['u0'] }), ...says('m0', 'both'), ends('r0', ['u0', 'u1']));
    projector.caughtUp();
    expect(projector.waitsFor).toBe('next-turn');
    projector.timeOut();
    expect([runs(), projector.isOver]).toEqual([['r0: both success', 'asked: success'], true]);
  });
});

describe('a request', () => {
  const pending: PendingRequest = {
    id: 'q1',
    kind: 'permission',
    title: 'May I?',
    toolName: null,
    toolCallId: null,
    input: null,
    options: [],
    digest: 'q1-digest',
    openedPosition: '1',
    expiresAt: null,
  };

  test('ends the run of a waiting client, also from a hidden turn', () => {
    const { projector, take, runs } = projectorOf({ openTurnId: 'r0' });
    take(asks('q1'));
    expect([runs(), projector.isOver]).toEqual([['asked: interrupt'], true]);
  });

  test('is shown again when its answer failed', () => {
    const { projector, take, runs } = projectorOf({
      messageIds: [],
      answeredIn: 'r0',
      openTurnId: 'r0',
      pending: [pending],
      answered: ['q1'],
    });
    projector.caughtUp();
    expect(projector.isOver).toBe(false);
    take(custom('command:failed', { command_id: 'c', type: 'permission.decision', request_id: 'q1', reason: 'gone' }));
    expect([runs(), projector.isOver]).toEqual([['asked: (command:failed) interrupt'], true]);
  });

  test('is shown to a connected client, with what follows', () => {
    const { projector, take, runs } = projectorOf({ messageIds: [], follows: 'always' });
    projector.projectHistory([]);
    projector.caughtUp();
    take(starts('r1'), ...says('m1', 'I need'), asks('q1'));
    take(custom('request:resolved', { request_id: 'q1', outcome: 'allowed' }), ...says('m2', 'have'), ends('r1'));
    expect([runs(), projector.isOver]).toEqual([
      ['asked: success', 'r1: I need (request:opened) interrupt', 'r1/2: (request:resolved) have success'],
      false,
    ]);
  });
});

describe('an event between runs', () => {
  test('waits for its answer’s run, the next run or the end', () => {
    const { projector, take, runs } = projectorOf({ messageIds: [], follows: 'always' });
    projector.projectHistory([]);
    take(...person('u2', 'mine?'), ...person('u3', 'and mine?'), custom('interlude:notice', { text: 'x' }));
    expect(runs()).toEqual(['asked: success']);
    take(starts('r1', { userMessageIds: ['u3'] }), ends('r1'));
    expect(runs()).toEqual(['r1: (interlude:notice) and mine? success']);
    projector.stopFollowing();
    expect(runs()).toEqual(['outside-1: mine? success']);
    expect(projector.isOver).toBe(true);
  });

  test('is counted when it is left out', () => {
    const { projector, take, runs } = projectorOf({ messageIds: [], follows: 'always' });
    projector.projectHistory([]);
    take(...Array.from({ length: 300 }, (_, index) => custom(`own:${index}`, {})), starts('r1'), ends('r1'));
    expect(runs().at(-1)).toContain('(own:299) (interlude:left-out) success');
  });
});
