import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { unseenReason } from '@/components/requests/request-head';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { renderedText } from '../support/rendered-text';
import { aRequest } from './rows';

function shown(toolName: string, fields: Parameters<typeof aRequest>[0] = {}): string {
  const markup = renderToStaticMarkup(
    <NowProvider renderedAt={1_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        {renderRequest(aRequest({ toolName, ...fields }))}
      </LivenessProvider>
    </NowProvider>,
  );
  return renderedText(markup.replaceAll('<!-- -->', ''));
}

/** The longest name that the protocol allows. */
const LONG = `mcp__files__${'a'.repeat(130)}`;

describe('the tool name of a request', () => {
  it.each([
    ['differ only at their end', `${LONG}_read`, `${LONG}_remove`],
    ['would read the same as people say them', 'mcp__github__delete', 'github: delete'],
    ['differ by what can’t be seen', 'Bash', 'Bash\u200b'],
  ])('is distinguishable, even if both %s', (_what, one, other) => {
    for (const name of [one, other]) expect(shown(name)).toContain(name);
    expect(shown(one)).not.toBe(shown(other));
    const denied = { outcome: 'denied', title: 'Do it?' } as const;
    for (const name of [one, other]) expect(shown(name, denied)).toContain(name);
    expect(unseenReason(aRequest({ toolName: one }), 'open')).toBeNull();
  });

  it('can’t be allowed if its name is longer than shown', () => {
    const name = 'x'.repeat(300);
    expect(shown(name)).not.toContain(name);
    expect(unseenReason(aRequest({ toolName: name }), 'open')).toMatch(/too long to show in full/);
  });

  it('can’t be allowed if its title is the whole request and longer than shown', () => {
    const title = `Run: ${'echo ok; '.repeat(60)}rm -rf ~`;
    expect(unseenReason(aRequest({ title }), null)).toMatch(/too long to show in full/);
    expect(unseenReason(aRequest({ title }), 'open')).toBeNull();
    expect(unseenReason(aRequest({ title: 'Run: ls' }), null)).toBeNull();
    expect(shown('Bash', { title: 'x'.repeat(400), input: null })).toContain(`“${'x'.repeat(400)}”`);
  });
});
