import type { Task } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { TaskPanel } from '@/components/tasks/task-panel';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { aTask } from './rows';

const render = (omitted?: number, kind: Task['kind'] = 'shell') =>
  renderToStaticMarkup(
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        <TaskPanel tasks={[aTask({ status: 'running', kind })]} omitted={omitted} />
      </LivenessProvider>
    </NowProvider>,
  ).replaceAll('<!-- -->', '');

describe('a session’s tasks', () => {
  it('count those that are not listed', () => {
    const markup = render(9_800);
    expect(markup).toContain('1 of 9,801 running');
    expect(markup).toContain('and 9,800 more not listed');
  });

  it('count nothing if all are listed', () => {
    expect(render()).toContain('1 of 1 running');
    expect(render()).not.toContain('not listed');
  });
  it('set commands in the font for code, and words in the font for text', () => {
    expect(render()).toMatch(/font-mono[^>]*>.*<\/span>/);
    expect(render(undefined, 'subagent')).not.toContain('font-mono');
  });
});
