import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { Conversation } from '@interlude/runner/sources/claude/conversation';
import { describe, expect, test } from 'vitest';
import { recordingLines } from '@/tests/support/recordings';
import { MemorySourceContext } from '@/tests/support/source-contract';

/** A live conversation whose stale snapshot still lists a pending reply for every delivered message. */
function conversation() {
  const given: string[] = [];
  const around = new MemorySourceContext(() =>
    given.map((messageId, sentAt) => ({
      ...{ messageId, sentAt, sessionId: 's', text: '' },
      from: { kind: 'person', id: 'operator' },
    })),
  );
  const memory = { sessionId: 's', conversationId: 'c', cwd: '/', pid: null, running: true };
  const talk = new Conversation(around, memory, [], () => 1);
  const give = (id: string) => {
    given.push(id);
    talk.delivering(id);
  };
  return { talk, around, give };
}

/** Each turn with its cause, the `replyTo` of its texts, and the messages of its end. */
function turnsIn(events: readonly AgUiEvent[]) {
  const turns: { cause: string; replyTo: string[]; names: string[] }[] = [];
  for (const { type, role, subagentRunId, metadata } of events) {
    const { turn, trigger, replyTo, userMessageIds } = metadata?.interlude ?? {};
    if (type === 'RUN_STARTED')
      turns.push({ cause: turn === 'user' ? 'user' : `${trigger?.kind}`, replyTo: [], names: [] });
    const open = turns.at(-1);
    if (type === 'TEXT_MESSAGE_START' && role === 'assistant' && subagentRunId === undefined)
      open?.replyTo.push(...(replyTo ?? []));
    if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') open?.names.push(...(userMessageIds ?? []));
  }
  return turns;
}

describe('the agent’s text', () => {
  test.each(['race', 'midturn-text', '3bg', 'agents', 'bash-bg', 'stoptask', 'perm'])(
    'answers the messages of its turn, and none in a turn woken by a task: %s',
    (name) => {
      const { talk, around, give } = conversation();
      for (const { src, msg } of recordingLines(name)) {
        const { uuid } = (msg ?? {}) as { uuid?: string };
        if (src === 'in' && uuid !== undefined) give(uuid);
        if (src === 'sdk') talk.received(msg);
      }
      const turns = turnsIn(around.events);
      expect(turns.map(({ cause }) => cause)).toContain('user');
      for (const { replyTo, names, cause } of turns) {
        for (const id of replyTo) expect(names, `${cause} turn`).toContain(id);
        if (cause === 'task') expect(replyTo).toEqual([]);
      }
    },
  );

  const init = (uuid: string, ...ids: string[]) => ({
    ...{ type: 'system', subtype: 'init', uuid },
    ...(ids.length > 0 ? { user_message_uuids: ids } : {}),
  });
  const text = (uuid: string) => ({
    type: 'assistant',
    uuid,
    message: { id: `m-${uuid}`, content: [{ type: 'text', text: uuid }] },
  });
  const result = (uuid: string, more: object = {}) => ({
    ...{ type: 'result', subtype: 'success', uuid, num_turns: 1, result: 'x' },
    ...more,
  });

  test('in a between-run turn answers messages read before, not undelivered ones', () => {
    const { talk, around, give } = conversation();
    give('old');
    for (const message of [init('i1', 'old'), text('a1')]) talk.received(message);
    talk.received(result('r1', { is_error: true, terminal_reason: 'api_error', user_message_uuids: ['old'] }));
    give('new');
    for (const message of [init('i2'), text('a2'), result('r2', { origin: { kind: 'peer' } })]) talk.received(message);
    for (const message of [init('i3', 'new'), text('a3'), result('r3', { user_message_uuids: ['new'] })]) {
      talk.received(message);
    }
    expect(turnsIn(around.events).map(({ replyTo }) => replyTo)).toEqual([['old'], ['old'], ['new']]);
  });

  test('in a between-run turn of a restarted process does not answer waiting messages', () => {
    const { talk, around, give } = conversation();
    give('old');
    for (const message of [init('i1', 'old'), text('a1'), result('r1', { user_message_uuids: ['old'] })])
      talk.received(message);
    talk.processEnded({ reason: 'exited', goesOn: 'It is started again.' });
    give('new');
    for (const message of [init('i2'), text('a2'), result('r2', { origin: { kind: 'task-notification' } })])
      talk.received(message);
    expect(turnsIn(around.events).at(-1)).toMatchObject({ cause: 'unknown', names: [] });
    expect(turnsIn(around.events).at(-1)?.replyTo).not.toContain('new');
  });
});
