import { InputQueue } from '@interlude/runner/sources/claude/claude-input';
import type { UserMessage } from '@interlude/runner/sources/claude/claude-sdk';
import { describe, expect, test } from 'vitest';

function message(uuid: string): UserMessage {
  return {
    type: 'user',
    message: { role: 'user', content: [{ type: 'text', text: uuid }] },
    parent_tool_use_id: null,
    uuid,
  };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

/** A process that reads the queue. */
function reader(queue: InputQueue) {
  const end = new AbortController();
  const read: string[] = [];
  const done = (async () => {
    for await (const one of queue.messages(end.signal)) read.push(one.uuid);
  })();
  return { read, done, die: () => end.abort() };
}

describe('the input of a CLI', () => {
  test('passes the next message once the CLI confirmed the previous one', async () => {
    const handed: string[] = [];
    const queue = new InputQueue(({ uuid }) => void handed.push(uuid));
    const { read, die, done } = reader(queue);
    await queue.push(message('1'));
    const second = queue.push(message('2'));
    await tick();
    expect(read).toEqual(['1']);
    queue.confirmed('1');
    await second;
    await tick();
    expect(read).toEqual(['1', '2']);
    expect(handed).toEqual(['1', '2']);
    die();
    await done;
  });

  test('passes messages that no process pulled to the next one', async () => {
    const queue = new InputQueue(() => {});
    const first = reader(queue);
    await queue.push(message('1'));
    const waiting = queue.push(message('2'));
    await tick();
    first.die();
    await first.done;
    expect(queue.waiting).toEqual(['2']);
    queue.requeue([message('1')]);
    const next = reader(queue);
    await tick();
    queue.confirmed('1');
    await waiting;
    await tick();
    expect(next.read).toEqual(['1', '2']);
    next.die();
    await next.done;
  });

  test('fails waiting messages with a reason on close', async () => {
    const queue = new InputQueue(() => {});
    const waiting = queue.push(message('1'));
    queue.close('it kept dying');
    await expect(waiting).rejects.toThrow('it kept dying');
    await expect(queue.push(message('2'))).rejects.toThrow('it kept dying');
  });
});
