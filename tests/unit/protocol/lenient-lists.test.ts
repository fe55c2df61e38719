import { commandsOf, limitsOf, modeAndModelOf, troubleOf } from '@interlude/protocol/agent-status-view';
import { defaultOption, readFileEdits, readPlanEntries, readRequestOptions } from '@interlude/protocol/event-fields';
import {
  MAX_CAPTION,
  MAX_EDITS,
  MAX_ID_LENGTH,
  MAX_ITEM_TEXT,
  MAX_OPTION_LABEL,
  MAX_OPTIONS,
  MAX_PLAN_ENTRIES,
} from '@interlude/protocol/limits';
import { describe, expect, it } from 'vitest';

describe('readRequestOptions', () => {
  const yes = { id: 'y', label: 'Yes', kind: 'allow' } as const;
  const always = { id: 'a', label: 'Always', kind: 'allow', isLasting: true } as const;
  const no = { id: 'n', label: 'No', kind: 'deny' } as const;

  it('keeps the order and drops unknown fields', () => {
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
  ])('returns none for a malformed list: %s', (_what, list) => {
    expect(readRequestOptions(list)).toEqual([]);
  });

  it('limits the number and the labels', () => {
    const many = Array.from({ length: 40 }, (_, index) => ({ ...yes, id: `${index}`, label: 'é'.repeat(300) }));
    const options = readRequestOptions(many);
    expect(options).toHaveLength(MAX_OPTIONS);
    expect(options[0]?.label).toHaveLength(MAX_OPTION_LABEL);
  });

  it('defaultOption prefers an answer that holds once', () => {
    expect(defaultOption([always, yes, no], 'allow')).toBe(yes);
    expect(defaultOption([always, no], 'allow')).toBeNull();
    expect(defaultOption([always, yes, no], 'deny')).toBe(no);
    expect(defaultOption([yes], 'deny')).toBeNull();
  });
});

describe('readFileEdits', () => {
  const edit = { path: 'a.ts', before: 'one', after: 'two' };

  it('drops malformed edits', () => {
    expect(readFileEdits([edit, { path: 'b.ts', before: 'x' }, null, { ...edit, more: 1 }])).toEqual([edit, edit]);
    for (const said of [null, 'x', { 0: edit }, 7]) expect(readFileEdits(said)).toEqual([]);
  });

  it('limits number and total text, skipping edits that are too large', () => {
    expect(readFileEdits(Array.from({ length: MAX_EDITS + 9 }, () => edit))).toHaveLength(MAX_EDITS);
    const large = { ...edit, after: 'x'.repeat(MAX_ITEM_TEXT) };
    expect(readFileEdits([large, edit])).toEqual([edit]);
    expect(readFileEdits([{ ...edit, path: 'p'.repeat(MAX_CAPTION + 1) }])[0]?.path).toHaveLength(MAX_CAPTION);
  });
});

describe('readPlanEntries', () => {
  it('treats an unknown status as pending', () => {
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

  it('limits the entries and counts the omitted ones', () => {
    const plan = readPlanEntries(Array.from({ length: MAX_PLAN_ENTRIES + 3 }, () => ({ content: 'x'.repeat(9_000) })));
    expect([plan?.entries.length, plan?.omitted]).toEqual([MAX_PLAN_ENTRIES, 3]);
    expect(plan?.entries[0]?.content).toHaveLength(MAX_CAPTION);
  });
});

describe('agent limits', () => {
  it('are read leniently', () => {
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
    expect(modeAndModelOf({ mode: 'acceptEdits' })).toEqual([{ name: 'Mode', text: 'Accepts edits' }]);
    expect(modeAndModelOf({ mode: 'constructor' })).toEqual([{ name: 'Mode', text: 'constructor' }]);
    expect(commandsOf(status)).toEqual([
      { name: 'compact', description: 'Shortens' },
      { name: 'x', description: '' },
    ]);
  });

  it('are empty for a missing or malformed status', () => {
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
