import { commandsOf, limitsOf, modeAndModelOf, troubleOf } from '@interlude/protocol/agent-limits';
import { readFileEdits, readPlanEntries } from '@interlude/protocol/event-fields';
import {
  MAX_CAPTION,
  MAX_EDITS,
  MAX_ID_LENGTH,
  MAX_ITEM_TEXT,
  MAX_OPTION_LABEL,
  MAX_OPTIONS,
  MAX_PLAN_ENTRIES,
} from '@interlude/protocol/limits';
import { defaultOption, readRequestOptions } from '@interlude/protocol/request-options';
import { describe, expect, it } from 'vitest';

describe('the options of a permission', () => {
  const yes = { id: 'y', label: 'Yes', kind: 'allow' } as const;
  const always = { id: 'a', label: 'Always', kind: 'allow', isLasting: true } as const;
  const no = { id: 'n', label: 'No', kind: 'deny' } as const;

  it('are kept in their order, without what else is said of them', () => {
    expect(readRequestOptions([{ ...always, more: 1 }, { ...yes, isLasting: 'no' }, no])).toEqual([always, yes, no]);
  });

  it.each([
    ['no list', { 0: yes }],
    ['one that is no object', [yes, 'no']],
    ['one without an id', [yes, { ...no, id: '' }]],
    ['one whose id is too long', [yes, { ...no, id: 'x'.repeat(MAX_ID_LENGTH + 1) }]],
    ['one whose id nobody can send', [yes, { ...no, id: 'a\0b' }]],
    ['one of an unknown kind', [yes, { ...no, kind: 'maybe' }]],
    ['one without words', [yes, { ...no, label: ' ' }]],
    ['two under one id', [yes, { ...no, id: 'y' }]],
  ])('are none where the list is malformed: %s', (_what, list) => {
    expect(readRequestOptions(list)).toEqual([]);
  });

  it('are bounded', () => {
    const many = Array.from({ length: 40 }, (_, at) => ({ ...yes, id: `${at}`, label: 'é'.repeat(300) }));
    const options = readRequestOptions(many);
    expect(options).toHaveLength(MAX_OPTIONS);
    expect(options[0]?.label).toHaveLength(MAX_OPTION_LABEL);
  });

  it('give to a plain yes what holds for this once, and to a plain no the first way to deny', () => {
    expect(defaultOption([always, yes, no], 'allow')).toBe(yes);
    expect(defaultOption([always, no], 'allow')).toBeNull();
    expect(defaultOption([always, yes, no], 'deny')).toBe(no);
    expect(defaultOption([yes], 'deny')).toBeNull();
  });
});

describe('what a call changed in files', () => {
  const edit = { path: 'a.ts', before: 'one', after: 'two' };

  it('is what can be read of it, and the rest is left out', () => {
    expect(readFileEdits([edit, { path: 'b.ts', before: 'x' }, null, { ...edit, more: 1 }])).toEqual([edit, edit]);
    for (const said of [null, 'x', { 0: edit }, 7]) expect(readFileEdits(said)).toEqual([]);
  });

  it('is bounded in number and in text, and what is small fits behind what is too large', () => {
    expect(readFileEdits(Array.from({ length: MAX_EDITS + 9 }, () => edit))).toHaveLength(MAX_EDITS);
    const large = { ...edit, after: 'x'.repeat(MAX_ITEM_TEXT) };
    expect(readFileEdits([large, edit])).toEqual([edit]);
    expect(readFileEdits([{ ...edit, path: 'p'.repeat(MAX_CAPTION + 1) }])[0]?.path).toHaveLength(MAX_CAPTION);
  });
});

describe('a plan', () => {
  it('is its entries, of which one with an unknown status is still to be done', () => {
    const told = [
      { content: 'a', status: 'completed', priority: 'high' },
      { content: 'b', status: 'soon' },
      { status: 1 },
    ];
    expect(readPlanEntries(told)).toEqual({
      entries: [
        { content: 'a', status: 'completed', priority: 'high' },
        { content: 'b', status: 'pending' },
      ],
      omitted: 0,
    });
    expect(readPlanEntries({ entries: [] })).toBeNull();
  });

  it('is bounded, and says how much is left out', () => {
    const plan = readPlanEntries(Array.from({ length: MAX_PLAN_ENTRIES + 3 }, () => ({ content: 'x'.repeat(9_000) })));
    expect([plan?.entries.length, plan?.omitted]).toEqual([MAX_PLAN_ENTRIES, 3]);
    expect(plan?.entries[0]?.content).toHaveLength(MAX_CAPTION);
  });
});

describe('what a runner tells of its agent', () => {
  it('is read as far as it can be', () => {
    const status = {
      limits: ['It tells no ends.', ' It tells no ends. ', 7, ''],
      trouble: ' Start it again. ',
      mode: 'Plan',
      model: 3,
      commands: [{ name: '/compact', description: 'Shortens' }, { name: 'compact' }, { name: 'a b' }, { name: 'x' }, 1],
    };
    expect(limitsOf(status)).toEqual(['It tells no ends.']);
    expect(troubleOf(status)).toBe('Start it again.');
    expect(modeAndModelOf(status)).toEqual([{ name: 'Mode', text: 'Plan' }]);
    expect(commandsOf(status)).toEqual([
      { name: 'compact', description: 'Shortens' },
      { name: 'x', description: '' },
    ]);
  });

  it('is nothing where nothing is told, or nonsense', () => {
    for (const status of [null, {}, { limits: 'x', trouble: {}, mode: [], commands: { a: 1 } }]) {
      expect([limitsOf(status), troubleOf(status), modeAndModelOf(status), commandsOf(status)]).toEqual([
        [],
        null,
        [],
        [],
      ]);
    }
  });
});
