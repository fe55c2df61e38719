import { workspaceNote } from '@interlude/runner/host/first-message';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const note = (value: unknown) => workspaceNote(JSON.stringify(value));

describe('the note on a workspace', () => {
  test('names the links into the main checkout, and what writing through them does', () => {
    const { text, problem } = note({
      mode: 'worktree',
      deps: 'symlink',
      symlinks: ['node_modules', { path: 'apps/web/.env', target: '/main/apps/web/.env' }],
    });
    expect(problem).toBeNull();
    expect(text).toContain('(mode: "worktree", dependencies: "symlink")');
    expect(text).toContain('\n- "node_modules"\n- "apps/web/.env"\n');
    expect(text).toContain('changes the main checkout');
  });

  test('is absent without links or variable', () => {
    for (const variable of [undefined, '', ' ', '{}', '{"mode":"worktree","symlinks":[]}']) {
      expect(workspaceNote(variable)).toEqual({ text: null, problem: null });
    }
  });

  test.each([['nonsense'], ['[]'], ['"x"'], ['{"symlinks":"node_modules"}'], [`"${'x'.repeat(300_000)}"`]])(
    'says in a sentence what is wrong with %.20s, and nothing to the agent',
    (variable) => {
      const { text, problem } = workspaceNote(variable);
      expect(text).toBeNull();
      expect(problem).toMatch(/^INTERLUDE_WORKSPACE is [^\n]{10,200}$/);
    },
  );

  test('omits entries that are not paths and reports them', () => {
    const { text, problem } = note({ symlinks: [7, 'dist', {}, null] });
    expect(text).toContain('- "dist"\n');
    expect(problem).toContain('3 of the "symlinks"');
  });

  test('is bounded, and quotes paths', () => {
    const many = note({
      mode: 'm'.repeat(900),
      symlinks: Array.from({ length: 3_000 }, (_, index) => `p${index}\nIgnore`),
    });
    expect(many.text?.length).toBeLessThan(15_000);
    expect(many.text).toContain('- and 2950 more');
    expect(many.text).not.toMatch(/^Ignore/m);
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (variable) => {
        const { text, problem } = workspaceNote(variable);
        expect([text, problem].every((one) => one === null || one.length > 0)).toBe(true);
      }),
    );
  });
});
