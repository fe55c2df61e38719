import { addedText } from '@interlude/runner/adapters/agentapi/agentapi-adapter';
import { parseScreenPrompt } from '@interlude/runner/adapters/agentapi/screen-prompt';
import { describe, expect, test } from 'vitest';

const asks = (screen: string) => {
  const prompt = parseScreenPrompt(screen);
  return (
    prompt && {
      title: prompt.title,
      keys: prompt.keys,
      options: prompt.options.map(({ id, kind, label }) => [id, kind, label]),
    }
  );
};

describe('a choice on a screen', () => {
  test('of Claude Code', () => {
    expect(
      asks(`
● I remove the folder.

╭────────────────────────────────────────────────────────────────────────────╮
│ Bash command                                                               │
│                                                                            │
│   rm -r build                                                              │
│                                                                            │
│ Do you want to proceed?                                                    │
│ ❯ 1. Yes                                                                   │
│   2. Yes, and don't ask again for rm commands in                           │
│   /home/me/project                                                         │
│   3. No, and tell Claude what to do differently (esc)                      │
╰────────────────────────────────────────────────────────────────────────────╯
`),
    ).toEqual({
      title: 'Do you want to proceed?',
      keys: 'arrows',
      options: [
        ['1', 'allow', 'Yes'],
        ['2', 'allow', "Yes, and don't ask again for rm commands in /home/me/project"],
        ['3', 'deny', 'No, and tell Claude what to do differently (esc)'],
      ],
    });
  });

  test('of Codex', () => {
    const screen = [
      '  Would you like to run the following command?',
      '',
      '  $ rm -r build',
      '',
      '› 1. Yes, proceed (y)',
      '  2. No, and tell Codex what to do differently (esc)',
      '',
      '  Press enter to confirm or esc to cancel',
    ].join('\n');
    expect(asks(screen)).toMatchObject({ title: 'Would you like to run the following command?', keys: 'arrows' });
  });

  test('of Aider', () => {
    expect(asks('Add main.py to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on’t ask again [Yes]:')).toEqual({
      title: 'Add main.py to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on’t ask again [Yes]:',
      keys: 'letters',
      options: [
        ['y', 'allow', 'Yes'],
        ['n', 'deny', 'No'],
        ['a', 'allow', 'All'],
        ['s', 'deny', 'Skip all'],
        ['d', 'deny', 'Don’t ask again'],
      ],
    });
  });

  test('by yes and no', () => {
    expect(asks('Removing files\nGo on? (y/n)')).toMatchObject({ title: 'Go on? (y/n)', keys: 'letters' });
  });

  test.each([
    ['a list that the agent wrote', 'Three steps:\n1. Read\n2. Write\n3. Test\n'],
    ['a list with a quote in it', '> 1. Read the file\n\nThat is what you said.'],
    ['a list that is numbered from elsewhere', '❯ 2. Read\n  3. Write'],
    ['two marks', '❯ 1. Read\n❯ 2. Write'],
    ['a choice with many words behind it', '❯ 1. Yes\n  2. No\nYes it is.\nI go on.\nAnd on.\nAnd on.'],
    ['an empty prompt', '> '],
    ['a question in words', 'Shall I go on?'],
    ['a y/n in the middle of words', 'I asked (y/n) and went on.'],
    ['nothing', ''],
  ])('is none: %s', (_what, screen) => {
    expect(parseScreenPrompt(screen)).toBeNull();
  });

  test.each([
    ['beyond an empty stretch', 'rm -rf ~\n\n\necho done'],
    ['above a line that looks like a frame', 'rm -rf ~\n────────────────────────────\necho done'],
    ['behind a bar', 'curl example.org/x\n| sh'],
    ['in many lines', `rm -rf ~${'\necho done'.repeat(100)}`],
    ['that is set in', 'if true:\n    rm(home)'],
  ])('shows all of a command %s', (_where, command) => {
    expect(parseScreenPrompt(`Run this?\n\n${command}\n\n❯ 1. Yes\n  2. No`)?.text).toBe(
      `Run this?\n\n${command}\n\n  1. Yes\n  2. No`,
    );
    expect(parseScreenPrompt(`${command}\n\nRun this? (y/n)`)?.text).toBe(`${command}\n\nRun this? (y/n)`);
  });

  test('notes hidden lines above and is rejected if its last lines don’t fit', () => {
    const long = `rm -rf ~${'\necho done'.repeat(300)}\nRun this? (y/n)`;
    expect(parseScreenPrompt(long)?.text).toMatch(/^… \[the terminal shows more above\]\necho done\n/);
    const wide = `${'x'.repeat(50_000)}\n${'y'.repeat(50_000)}\n❯ 1. Yes\n  2. No`;
    expect(parseScreenPrompt(wide)?.text).toMatch(/^… \[the terminal shows more above\]\ny+\n {2}1\. Yes/);
    expect(parseScreenPrompt(`Go on?\n❯ 1. Yes\n  2. No${'o'.repeat(70_000)}`)).toBeNull();
  });

  test('with ambiguous letters is rejected', () => {
    expect(parseScreenPrompt('Delete? (N)o/(N)ow [No]:')).toBeNull();
  });

  test('joins answers of several lines, the last one too', () => {
    const screen = 'Go on?\n❯ 1. No\n  2. Yes, and always run\n     rm -rf /\n\n  Press enter to confirm';
    expect(asks(screen)?.options).toEqual([
      ['1', 'deny', 'No'],
      ['2', 'allow', 'Yes, and always run rm -rf /'],
    ]);
  });

  test('is the same prompt wherever the mark is', () => {
    expect(parseScreenPrompt('Go on?\n❯ 1. Yes\n  2. No')?.text).toBe(
      parseScreenPrompt('Go on?\n  1. Yes\n❯ 2. No')?.text,
    );
  });
});

describe('the added text of a message', () => {
  test.each([
    ['nothing', 'a\nb', 'a\nb', ''],
    ['lines behind it', 'a\nb', 'a\nb\n\nc\nd', 'c\nd'],
    ['a line that has grown', 'a\nThe poll', 'a\nThe poll has ended', 'The poll has ended'],
    ['lines, where the screen has moved on', 'a\nb\nc\nd', 'c\nd\ne', 'e'],
    ['all of it', 'a\nb', 'x\ny', 'x\ny'],
    ['nothing, where lines have gone', 'a\nb\nc', 'a\nb', ''],
    ['all of it, before which was nothing', '', 'a', 'a'],
  ])('is %s', (_what, before, now, tail) => {
    expect(addedText(before, now)).toBe(tail);
  });
});
