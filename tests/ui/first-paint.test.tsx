import type { Item } from '@interlude/protocol/read-models';
import { Window } from 'happy-dom';
import { renderToString } from 'react-dom/server';
import { describe, expect, it, vi } from 'vitest';
import { firstPaintOf } from '@/components/transcript/first-paint';
import { CodeBlock, keepHighlighted } from '@/components/ui/markdown/code-block';
import { loadHighlighter } from '@/components/ui/markdown/highlight-at-once';
import { aMessage, aTaskMoment, aTurn } from './rows';
import { transcriptMarkup } from './transcript-markup';

const aTurnOf = (id: string, items: Item[]) => aTurn({ id, position: id.replace(/\D/g, '') || '1', items });

describe('the first paint of a transcript', () => {
  it('shows a bounded part of a turn with 2,000 items', () => {
    const tasks = Array.from({ length: 2_000 }, (_, index) =>
      aTaskMoment({ id: `t${index}`, position: `${index + 10}` }),
    );
    const markup = transcriptMarkup([aTurnOf('r1', tasks)]);
    expect(markup.match(/role="group"/g)?.length).toBeLessThan(100);
    expect(markup).toMatch(/… and (?:<!-- -->)?1,9\d\d(?:<!-- -->)? more/);
    expect(markup.length).toBeLessThan(300_000);
  });

  it('shows as many turns as the tallest screen, but few large ones', () => {
    const usual = Array.from({ length: 30 }, (_, index) =>
      aTurnOf(`r${index}`, [
        aMessage({ id: `q${index}`, role: 'user', text: 'And now?' }),
        aMessage({ id: `a${index}`, text: '**Done.** '.repeat(50) }),
      ]),
    );
    expect(firstPaintOf(usual).turns.length).toBeGreaterThan(15);
    expect(firstPaintOf(usual).turns.length).toBeLessThan(25);
    expect(transcriptMarkup(usual)).toContain('<strong');
    const great = usual.map((turn, index) => ({
      ...turn,
      items: [aMessage({ id: `g${index}`, text: 'x'.repeat(100_000) })],
    }));
    const { turns } = firstPaintOf(great);
    expect(turns.at(-1)?.id).toBe('r29');
    expect(turns.length).toBeLessThan(10);
  });

  it('has coloured code in the newest answers, and a bounded amount of it', async () => {
    await loadHighlighter();
    const code = (lines: number, name = 'a') => `\`\`\`ts\n${`const ${name} = 'one';\n`.repeat(lines)}\`\`\`\n`;
    const answer = (id: string, text: string) => aTurnOf(id, [aMessage({ id: `m${id}`, text })]);
    expect(transcriptMarkup([answer('r1', `Here:\n\n${code(2)}`)])).toContain('hljs-keyword');
    expect(transcriptMarkup([answer('r1', code(200))])).not.toContain('hljs-');
    const many = Array.from({ length: 20 }, (_, index) => answer(`r${index}`, code(40, `n${index}`)));
    const { highlighted } = firstPaintOf(many);
    expect([...highlighted.keys()][0]).toContain('n19');
    expect(highlighted.size).toBeLessThan(12);
  });

  it('stops colouring code after a few blocks that are slow to colour', async () => {
    await loadHighlighter();
    const clock = vi.spyOn(performance, 'now');
    let at = 0;
    clock.mockImplementation(() => (at += 15));
    const blocks = Array.from({ length: 9 }, (_, index) => `\`\`\`ts\nconst a${index} = 1;\n\`\`\`\n`).join('\n');
    const { highlighted } = firstPaintOf([aTurnOf('r1', [aMessage({ text: blocks })])]);
    clock.mockRestore();
    expect(highlighted.size).toBeLessThan(4);
  });

  it('keeps the colours of its code when the browser renders it again', async () => {
    await loadHighlighter();
    const js = 'let a = `x`; // <b>&amp;</b>';
    const turn = aTurnOf('r1', [aMessage({ text: `\`\`\`js\n${js}\n\`\`\`` })]);
    const { document } = new Window();
    document.body.innerHTML = transcriptMarkup([turn]);
    const [code] = document.querySelectorAll('code[data-language]') as unknown as HTMLElement[];
    vi.stubGlobal('Element', document.defaultView?.Element);
    keepHighlighted(code === undefined ? [] : [code]);
    vi.unstubAllGlobals();
    const again = renderToString(<CodeBlock code={js} language="js" streaming={false} />);
    expect(again.match(/<code.*<\/code>/s)?.[0].replaceAll('<!-- -->', '')).toContain('hljs-keyword');
    expect(again).toContain('hljs-comment');
    expect(again).toMatch(/<pre tabindex="0" class="scroll-sideways/i);
  });
});
