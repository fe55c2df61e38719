import type { ComponentProps } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, test } from 'vitest';
import { ComposerRefusal } from '@/components/composer/composer-status';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { RefusalsProvider } from '@/components/live/refusals';
import { TaskStop } from '@/components/tasks/task-stop';
import { aTask } from './rows';

const store = new ActionStore('s1', () => {});

function stopOf(status: Record<string, unknown> | null): string {
  return renderToStaticMarkup(
    <ActionsProvider store={store}>
      <RefusalsProvider status={status}>
        <TaskStop task={aTask({ status: 'running', description: 'Poll' })} />
      </RefusalsProvider>
    </ActionsProvider>,
  );
}

describe('an unsupported command', () => {
  test('shows a reason instead of a button', () => {
    expect(stopOf(null)).toContain('aria-label="Stop “Poll”"');
    expect(stopOf({ takes: ['task.stop'] })).toContain('aria-label="Stop “Poll”"');
    const refused = stopOf({ takes: [], takesNot: { 'task.stop': 'its tasks ran long ago' } });
    expect(refused).not.toContain('<button');
    expect(refused).toContain('Can’t be stopped here');
    expect(refused).toContain('its tasks ran long ago');
  });

  test('replaces the composer with a reason and a link', () => {
    const instead = { agentId: 'talk\u202eto', sessionId: 'a/../b' };
    const markup = (
      sessionId: string,
      other: ComponentProps<typeof ComposerRefusal>['other'] = { connection: 'connected', status: null },
    ) =>
      renderToStaticMarkup(
        <ComposerRefusal
          refusal={{ reason: 'it is \u202e a recording', instead }}
          sessionId={sessionId}
          other={other}
        />,
      );
    expect(markup('s1')).toContain('href="/sessions/a%2F..%2Fb"');
    expect(markup('s1')).not.toContain('\u202e');
    expect(markup('s1')).toContain('You can’t send messages here');
    // No link to the current session.
    expect(markup('a/../b')).not.toContain('href');
    // No link to an offline agent.
    const away = markup('s1', { connection: 'away', status: null });
    expect(away).not.toContain('href');
    expect(away).not.toContain('\u202e');
    expect(away).toContain('is offline.');
    expect(markup('s1', { connection: 'away', status: { source: 'demo' } })).toContain(
      'is offline until the demo runs again.',
    );
  });
});
