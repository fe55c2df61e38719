import { renderToString } from 'react-dom/server';
import { afterEach, expect, it, vi } from 'vitest';
import { Markdown } from '@/components/ui/markdown/markdown';
import { ParsedAtOnce } from '@/components/ui/markdown/use-parsed';
import { hasTime, inSlice } from '@/components/ui/render-time';

const TEXT = `${'- **a** `b`\n'.repeat(200)}\nThe **end**.`;

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('what a server has parsed, a browser parses, however slow it is', () => {
  const page = (
    <ParsedAtOnce value={new Set([TEXT])}>
      <Markdown text={TEXT} />
    </ParsedAtOnce>
  );
  const fromServer = renderToString(page);
  expect(fromServer).toContain('<strong');

  vi.stubGlobal('window', {});
  // Each look at the clock is a second later.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 1_000));
  inSlice(() => {});
  expect(hasTime()).toBe(false);
  expect(renderToString(page)).toBe(fromServer);
});
