import {
  HOOK_EVENTS,
  hasHooks,
  hookEntries,
  SettingsError,
  withHooks,
  withoutHooks,
} from '@interlude/runner/hooks/hook-entries';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const entries = hookEntries("/opt/inter'lude/hook.sh", '/home/mara/.interlude');

/** Hand-formatted settings files. */
const SETTINGS = [
  '{}',
  '{}\n',
  '{\n}\n',
  '{ }',
  '{"model":"opus"}',
  '{\n  "model": "opus"\n}\n',
  '{\r\n\t"model": "opus",\r\n\t"hooks": {}\r\n}',
  '{\n    "hooks": {\n        "Stop": []\n    },\n    "model" : "opus"\n}\n',
  '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]},"z":1,"a":{"b":[1, 2 ,3]}}',
  `{
  "permissions": { "allow": ["Bash(ls:*)"] },   
  "hooks": {
    "PreToolUse": [ { "matcher": "Bash", "hooks": [ { "type": "command", "command": "lint # interlude-hooks" } ] } ],
    "Stop": [
      { "hooks": [ { "type": "command", "command": "notify-send \\"done, {}[]\\"" } ] }
    ]
  },
  "unknown\\u0020key": -1.50e+3,
  "env": {"A": "\\\\\\""}
}`,
];

describe('hook entries', () => {
  test.each(SETTINGS)('are added behind existing hooks, without other changes: %s', (text) => {
    const installed = withHooks(text, entries);
    const [before, after] = [JSON.parse(text), JSON.parse(installed)];
    for (const event of HOOK_EVENTS) {
      const theirs = before.hooks?.[event] ?? [];
      expect(after.hooks[event]).toEqual([...theirs, { hooks: [{ type: 'command', ...entries(event) }] }]);
      delete after.hooks[event];
      if (before.hooks) delete before.hooks[event];
    }
    expect({ ...after, hooks: undefined }).toEqual({ ...before, hooks: undefined });
    expect(after.hooks).toEqual(before.hooks ?? {});
    expect(hasHooks(installed)).toBe(true);
    expect(hasHooks(text)).toBe(false);
  });

  test.each(SETTINGS)('are added once, however often they are installed: %s', (text) => {
    const once = withHooks(text, entries);
    expect(withHooks(once, entries)).toBe(once);
    const moved = withHooks(once, hookEntries('/elsewhere/hook.sh', '/data'));
    expect(moved.match(/# interlude-hook"/g)).toHaveLength(HOOK_EVENTS.length);
    expect(moved).not.toContain('/opt/inter');
  });

  test.each(SETTINGS)('are removed without a trace: %s', (text) => {
    expect(withoutHooks(withHooks(text, entries), text)).toBe(text);
    expect(withoutHooks(text)).toBe(text);
  });

  // Parses hundreds of files dozens of times, which takes long on a busy machine.
  test('are removed without a trace from random files', () => {
    const key = fc.oneof(fc.constantFrom('hooks', 'model', 'Stop', '__proto__', 'a "b"'), fc.string());
    const settings = fc
      .tuple(
        fc.dictionary(key, fc.jsonValue({ maxDepth: 2 })),
        fc.option(
          fc.dictionary(fc.constantFrom(...HOOK_EVENTS, 'PreToolUse'), fc.array(fc.jsonValue({ maxDepth: 2 }))),
        ),
        fc.constantFrom(undefined, 1, 2, 4, '\t'),
      )
      .map(([other, hooks, indent]) => {
        const { hooks: _, ...rest } = other;
        return JSON.stringify(hooks ? { ...rest, hooks } : rest, null, indent);
      });
    fc.assert(
      fc.property(settings, (text) => {
        const installed = withHooks(text, entries);
        expect(Object.keys(JSON.parse(installed).hooks)).toEqual(expect.arrayContaining([...HOOK_EVENTS]));
        expect(withoutHooks(installed, text)).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  test('are removed from a file that has changed since', () => {
    const installed = withHooks('{\n  "model": "opus"\n}\n', entries);
    const changed = installed
      .replace('"model": "opus"', '"model": "sonnet"')
      .replace(
        '"SessionStart": [',
        '"SessionStart": [\n      { "hooks": [{ "type": "command", "command": "date" }] },',
      );
    const left = JSON.parse(withoutHooks(changed, '{\n  "model": "opus"\n}\n'));
    expect(left).toEqual({
      model: 'sonnet',
      hooks: { SessionStart: [{ hooks: [{ type: 'command', command: 'date' }] }] },
    });
  });

  test('give the agent a longer timeout than a waiting hook, and reset it', () => {
    const plain = withHooks('{}', entries);
    const patient = hookEntries("/opt/inter'lude/hook.sh", '/home/mara/.interlude', 600);
    const waits = JSON.parse(withHooks(plain, patient)).hooks;
    const [{ command, timeout } = { command: '', timeout: 0 }] = waits.PermissionRequest[0].hooks;
    expect(command).toMatch(/ PermissionRequest \S+ 600; fi; exit 0 # interlude-hook$/);
    expect(timeout).toBeGreaterThan(605);
    expect({ ...waits, PermissionRequest: null }).toEqual({ ...JSON.parse(plain).hooks, PermissionRequest: null });
    expect(withHooks(withHooks(plain, patient), entries)).toBe(plain);
  });

  test.each(SETTINGS)('that wait are removed without a trace: %s', (text) => {
    const patient = hookEntries('/opt/interlude/hook.sh', '/data', 600);
    expect(withoutHooks(withHooks(text, patient), text)).toBe(text);
  });

  test('are removed from a group with foreign hooks', () => {
    const shared = JSON.stringify({
      hooks: {
        Stop: [
          {
            hooks: [
              { type: 'command', command: 'date' },
              { type: 'command', ...entries('Stop') },
            ],
          },
        ],
      },
    });
    expect(JSON.parse(withoutHooks(shared))).toEqual({
      hooks: { Stop: [{ hooks: [{ type: 'command', command: 'date' }] }] },
    });
  });

  test.each([
    ['', 'is not JSON'],
    ['{"a":1,}', 'is not JSON'],
    ['// a comment\n{}', 'is not JSON'],
    ['\uFEFF{}', 'is not JSON'],
    ['[]', 'is not a JSON object'],
    ['"text"', 'is not a JSON object'],
    ['{"hooks":[]}', 'has hooks that are not an object'],
    ['{"hooks":{"Stop":{}}}', 'has a hooks.Stop value that is not an array'],
  ])('are not added to %j, which %s', (text, why) => {
    expect(() => withHooks(text, entries)).toThrow(SettingsError);
    expect(() => withHooks(text, entries)).toThrow(why);
  });
});
