import type { Item } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { firstPaintOf } from '@/components/transcript/first-paint';
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

  it('shows all 30 turns of usual size, but only the last of large ones', () => {
    const usual = Array.from({ length: 30 }, (_, index) =>
      aTurnOf(`r${index}`, [
        aMessage({ id: `q${index}`, role: 'user', text: 'And now?' }),
        aMessage({ id: `a${index}`, text: '**Done.** '.repeat(50) }),
      ]),
    );
    expect(firstPaintOf(usual).turns).toHaveLength(30);
    expect(transcriptMarkup(usual)).toContain('<strong');
    const great = usual.map((turn, index) => ({
      ...turn,
      items: [aMessage({ id: `g${index}`, text: 'x'.repeat(100_000) })],
    }));
    const { turns } = firstPaintOf(great);
    expect(turns.at(-1)?.id).toBe('r29');
    expect(turns.length).toBeLessThan(10);
  });
});
