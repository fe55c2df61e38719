import { beforeEach, describe, expect, test } from 'vitest';
import { PlayedTerminal } from '../../support/played-terminal';

/** Turns that a stop hook holds, ours or another, and turns that nothing but the agent's own words opens. */

let terminal: PlayedTerminal;
beforeEach(async () => {
  terminal = await PlayedTerminal.begin();
});

const command = () => {
  const name = '<command-message>review is running…</command-message>\n<command-name>/review</command-name>';
  terminal.line('user', { role: 'user', content: name });
  terminal.line('user', { role: 'user', content: [{ type: 'text', text: 'Review the code.' }] }, { isMeta: true });
};

describe('a turn that the agent’s own words open', () => {
  test.each(['turn_duration', 'its stop hook alone'])('has them told once, ended by %s', async (by) => {
    command();
    terminal.mirror.prompted(terminal.claim());
    await terminal.pass(500);
    terminal.says('Reviewed.');
    await terminal.pass(30);
    terminal.mirror.stopped(null, 'Reviewed.', terminal.claim());
    if (by === 'turn_duration') terminal.isOver();
    await terminal.pass(10);
    await terminal.pass(1_600);
    expect(terminal.told).toEqual(['RUN_STARTED', 'Reviewed.', 'RUN_FINISHED']);
  });

  test('has them told once, where another hook held the agent after its turn was told to be over', async () => {
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

  test('is held for the words of its own hook, though the turn before said the same', async () => {
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

describe('lines that come after the hook’s word was taken', () => {
  /** Another hook held the agent. Nothing of it was in the transcript in time, and the first stop hook was not heard. */
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

  test('are not told again, where a hook held the agent before the one that ended the turn', async () => {
    const { heldAt, stoppedAt } = await closedWith('4');
    terminal.says('Done.', heldAt - 20);
    terminal.isHeld('Tests fail', heldAt);
    terminal.says('4', stoppedAt - 20);
    terminal.isOver(stoppedAt + 5);
    await terminal.pass(2_000);
    expect(terminal.told).toEqual(['RUN_STARTED', '4', 'RUN_FINISHED', 'Done.']);
  });

  test('are all told, where those before the hold begin as the last ones do', async () => {
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
