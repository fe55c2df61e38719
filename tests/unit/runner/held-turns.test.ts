import { routeHook } from '@interlude/runner/sources/hooks/hooks-source';
import { MessageInbox } from '@interlude/runner/sources/hooks/message-inbox';
import { PermissionHooks } from '@interlude/runner/sources/hooks/permission-hooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { ScriptedTerminal } from '../../support/scripted-terminal';

/** Turns held by a stop hook, ours or foreign, and turns opened by a slash command. */

const NEVER = new AbortController().signal;

let terminal: ScriptedTerminal;
beforeEach(async () => {
  terminal = await ScriptedTerminal.begin();
});

const command = () => {
  const name = '<command-message>review is running…</command-message>\n<command-name>/review</command-name>';
  terminal.line('user', { role: 'user', content: name });
  terminal.line('user', { role: 'user', content: [{ type: 'text', text: 'Review the code.' }] }, { isMeta: true });
};

describe('a turn opened by a slash command', () => {
  test.each(['turn_duration', 'its stop hook alone'])('is emitted once when ended by %s', async (by) => {
    command();
    terminal.mirror.prompted(terminal.claim());
    await terminal.pass(500);
    terminal.says('Reviewed.');
    await terminal.pass(30);
    terminal.mirror.stopped(null, 'Reviewed.', terminal.claim());
    if (by === 'turn_duration') terminal.isOver();
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['/review', 'RUN_STARTED', 'Reviewed.', 'RUN_FINISHED']);
  });

  test('emits its texts once when another hook blocks the stop after its end', async () => {
    terminal.asks();
    terminal.says('Done.');
    await terminal.pass(10);
    terminal.mirror.stopped(null, 'Done.', terminal.claim());
    await terminal.pass(10);
    await terminal.pass(2_500);
    terminal.isHeld('Tests fail');
    await terminal.pass(300);
    terminal.says('Fixed.');
    await terminal.pass(10);
    terminal.mirror.stopped(null, 'Fixed.', terminal.claim());
    terminal.isOver();
    await terminal.pass(2_000);
    expect(terminal.told).toEqual([
      ...['RUN_STARTED', 'Done.', 'RUN_FINISHED'],
      ...['RUN_STARTED', 'Fixed.', 'RUN_FINISHED'],
    ]);
  });

  test('waits for the text of its own hook after a turn with an equal text', async () => {
    terminal.asks();
    terminal.says('Done.');
    await terminal.pass(10);
    terminal.mirror.stopped(null, 'Done.', terminal.claim());
    await terminal.pass(2_000);
    await terminal.pass(2_000);
    command();
    terminal.mirror.prompted(terminal.claim());
    terminal.line('assistant', { id: 'mt', stop_reason: null, content: [{ type: 'thinking', thinking: 'Hm.' }] });
    await terminal.pass(500);
    const stoppedAt = terminal.now;
    terminal.mirror.stopped(null, 'Done.', terminal.claim());
    await terminal.pass(3_000);
    expect(terminal.told.at(-1)).not.toBe('RUN_FINISHED');
    terminal.says('Done.', stoppedAt - 10);
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told.filter((word) => word === 'Done.')).toHaveLength(2);
    expect(terminal.told.at(-1)).toBe('RUN_FINISHED');
  });
});

describe('a turn whose stop hook has no text (older CLIs)', () => {
  async function stopped(): Promise<number> {
    terminal.asks();
    await terminal.pass(500);
    const stoppedAt = terminal.now;
    terminal.mirror.stopped(null, null, terminal.claim());
    return stoppedAt;
  }

  test('has its final text with a transcript 11 s behind', async () => {
    const stoppedAt = await stopped();
    for (let passed = 0; passed < 11; passed += 1) await terminal.pass(1_000);
    terminal.says('Done.', stoppedAt - 20);
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', 'RUN_FINISHED']);
  });

  test('ends after 12 s without text', async () => {
    await stopped();
    await terminal.pass(11_900);
    expect(terminal.told).toEqual(['RUN_STARTED']);
    await terminal.pass(200);
    expect(terminal.told).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
  });
});

describe('lines after the text of the hook was used', () => {
  /** Another hook held the agent; its lines are late, and the first stop hook is missing. */
  async function closedWith(word: string): Promise<{ heldAt: number; stoppedAt: number }> {
    terminal.asks();
    await terminal.pass(300);
    const heldAt = terminal.now;
    await terminal.pass(300);
    const stoppedAt = terminal.now;
    terminal.mirror.stopped(null, word, terminal.claim());
    await terminal.pass(10);
    await terminal.pass(5_100);
    expect(terminal.told).toEqual(['RUN_STARTED', word, 'RUN_FINISHED']);
    return { heldAt, stoppedAt };
  }

  test('are not repeated when an earlier hook blocked the stop', async () => {
    const { heldAt, stoppedAt } = await closedWith('4');
    terminal.says('Done.', heldAt - 20);
    terminal.isHeld('Tests fail', heldAt);
    terminal.says('4', stoppedAt - 20);
    terminal.isOver(stoppedAt + 5);
    await terminal.pass(2_000);
    expect(terminal.told).toEqual(['RUN_STARTED', '4', 'RUN_FINISHED', 'Done.']);
  });

  test('are all emitted when an equal text came before the hold', async () => {
    const { heldAt, stoppedAt } = await closedWith('Done.');
    terminal.says('Done.', heldAt - 20);
    terminal.isHeld('Tests fail', heldAt);
    terminal.says('Done.', stoppedAt - 20);
    await terminal.pass(2_000);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', 'RUN_FINISHED', 'Done.']);
  });

  test('are all emitted when texts before the hold share their beginning', async () => {
    const { heldAt, stoppedAt } = await closedWith('Done.\n\nAll of it.');
    terminal.says('Done.', heldAt - 20);
    await terminal.pass(10);
    terminal.isHeld('Tests fail', heldAt);
    terminal.says('Done.', stoppedAt - 30);
    terminal.says('All of it.', stoppedAt - 20);
    await terminal.pass(2_000);
    expect(terminal.told.slice(1)).toEqual(['Done.\n\nAll of it.', 'RUN_FINISHED', 'Done.']);
  });
});

describe('a turn held by our stop hook', () => {
  const OFFER = { messageIds: ['m1'], reason: 'A message is waiting for your reply: 2+2?' };

  /** The agent received the message and replied; the transcript has neither. */
  async function held(lastWords: string | null): Promise<{ heldAt: number; stoppedAt: number }> {
    terminal.asks();
    await terminal.pass(500);
    terminal.says('Done.');
    await terminal.pass(10);
    void terminal.mirror.offer(OFFER, terminal.claim());
    await terminal.pass(100);
    const heldAt = terminal.now;
    await terminal.pass(500);
    terminal.mirror.stopped(null, lastWords, terminal.claim());
    return { heldAt, stoppedAt: terminal.now };
  }

  test.each([
    ['whose hooks say nothing', null, 3_000],
    ['whose hooks say nothing, far behind', null, 30_000],
    ['far behind', '4', 30_000],
  ])('waits for the feedback line and what follows: a CLI %s', async (_which, lastWords, behindMs) => {
    const { heldAt, stoppedAt } = await held(lastWords);
    for (let passed = 0; passed < behindMs; passed += 1_000) await terminal.pass(1_000);
    terminal.isHeld(OFFER.reason, heldAt);
    await terminal.pass(1_000);
    expect(terminal.handed).toEqual(['m1']);
    await terminal.pass(1_000);
    terminal.says('4', stoppedAt - 20);
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', '4', 'RUN_FINISHED']);
    expect(terminal.inHandAtEnds).toEqual([['m1']]);
  });

  test('ends eventually without the feedback line', async () => {
    await held('4');
    await terminal.pass(60_000);
    expect(terminal.told.at(-1)).toBe('Done.');
    await terminal.pass(15_000);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', '4', 'RUN_FINISHED']);
    expect(terminal.inHandAtEnds).toEqual([[]]);
  });

  test('ends normally when the hook timed out', async () => {
    terminal.asks();
    terminal.says('Done.');
    await terminal.pass(500);
    const ranAt = terminal.now;
    void terminal.mirror.offer(OFFER, terminal.claim(ranAt));
    await terminal.pass(900);
    terminal.mirror.stopped(null, 'Done.', terminal.claim(ranAt));
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', 'RUN_FINISHED']);
    expect(terminal.inHandAtEnds).toEqual([[]]);
  });

  test('is recognized by the mirror after a kill before the line', async () => {
    terminal.asks();
    terminal.says('Done.');
    await terminal.pass(500);
    await terminal.mirror.offer(OFFER, terminal.claim());
    await terminal.takeOver();
    expect(terminal.mirror.isInFlight('m1')).toBe(true);
    await terminal.pass(8_000);
    terminal.isHeld(OFFER.reason);
    await terminal.pass(2_000);
    expect([terminal.handed, terminal.mirror.wasDelivered('m1')]).toEqual([['m1'], true]);
    terminal.says('4');
    await terminal.pass(10);
    terminal.mirror.stopped(null, '4', terminal.claim());
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Done.', '4', 'RUN_FINISHED']);
    const reply = terminal.events.find(({ metadata }) => metadata?.interlude?.replyTo !== undefined);
    expect(reply?.metadata?.interlude?.replyTo).toEqual(['m1']);
  });

  test('is not idle while the transcript lacks its prompt', async () => {
    terminal.mirror.prompted(terminal.claim());
    const promptedAt = terminal.now;
    await terminal.pass(1_000);
    void terminal.mirror.offer(OFFER, terminal.claim());
    await terminal.pass(8_000);
    expect([terminal.mirror.isBusy, terminal.mirror.isInFlight('m1')]).toEqual([true, true]);
    terminal.asks(promptedAt);
    terminal.says('Done.', promptedAt + 900);
    terminal.isHeld(OFFER.reason, promptedAt + 1_100);
    await terminal.pass(10);
    expect(terminal.handed).toEqual(['m1']);
  });
});

describe('a turn that failed at the model API', () => {
  const WORDS = 'API Error: 429';

  test.each([
    ['says what stands there', WORDS],
    ['says nothing of that', null],
  ])('has the text of the transcript three seconds later when its hook %s', async (_what, text) => {
    terminal.asks();
    await terminal.pass(500);
    const stoppedAt = terminal.now;
    const about = { session_id: 's', transcript_path: terminal.file, error: 'rate_limit', error_details: '429' };
    const input = text === null ? about : { ...about, last_assistant_message: text };
    const { mirror } = terminal;
    const nothing = () => undefined;
    const permissions = new PermissionHooks({ onChange: nothing, onAnswered: nothing, onReleased: nothing });
    const inbox = new MessageInbox();
    const router = {
      mirror: () => mirror,
      obligations: () => [],
      inbox,
      permissions,
      offer: () => null,
      log: nothing,
    };
    const call = { event: 'StopFailure', input, pid: null, at: stoppedAt, withinMs: null, signal: NEVER };
    void routeHook(call, router);
    for (let look = 0; look < 3; look += 1) await terminal.pass(1_000);
    const use = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } };
    terminal.line('assistant', { id: 'mc', stop_reason: 'tool_use', content: [use] }, {}, stoppedAt - 300);
    const content = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt' }];
    terminal.line('user', { role: 'user', content }, {}, stoppedAt - 200);
    terminal.says(WORDS, stoppedAt - 20, { isApiErrorMessage: true });
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told.filter((word) => word !== '{"command":"ls"}')).toEqual(['RUN_STARTED', WORDS, 'RUN_ERROR']);
    expect(terminal.events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'api_error' });
  });

  test.each(['the next prompt', 'its end in the transcript'])('has failed, closed by %s', async (by) => {
    terminal.asks();
    await terminal.pass(500);
    terminal.mirror.stopped('429', WORDS, terminal.claim());
    await terminal.pass(500);
    if (by === 'the next prompt') terminal.asks();
    else terminal.isOver();
    await terminal.pass(10);
    expect(terminal.told.slice(0, 3)).toEqual(['RUN_STARTED', WORDS, 'RUN_ERROR']);
  });
});

describe('a turn whose stop hook adds context', () => {
  test('continues with what the agent writes next', async () => {
    terminal.asks();
    await terminal.pass(500);
    terminal.says('Built.');
    void terminal.mirror.offer({ messageIds: [], reason: 'You can listen.' }, terminal.claim());
    await terminal.pass(50);
    terminal.isTold('You can listen.');
    await terminal.pass(6_000);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Built.']);
    terminal.says('I listen.');
    await terminal.pass(50);
    terminal.mirror.stopped(null, 'I listen.', terminal.claim());
    terminal.isOver();
    await terminal.pass(2_000);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Built.', 'I listen.', 'RUN_FINISHED']);
    expect(terminal.mirror.selfReport).toBe('idle');
  });

  test('continues when the hook is foreign and ours let it end', async () => {
    terminal.asks();
    await terminal.pass(500);
    terminal.says('Built.');
    terminal.mirror.stopped(null, 'Built.', terminal.claim());
    await terminal.pass(100);
    terminal.isTold('Lint it, too.');
    await terminal.pass(4_000);
    terminal.says('Linted.');
    await terminal.pass(50);
    terminal.mirror.stopped(null, 'Linted.', terminal.claim());
    terminal.isOver();
    await terminal.pass(2_000);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Built.', 'Linted.', 'RUN_FINISHED']);
  });
});
