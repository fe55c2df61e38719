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
