// @vitest-environment happy-dom

import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';
import { act, fireEvent, render, screen } from '@testing-library/react';
import { describe, expect, it, vi } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { Around, acceptAnswers } from './answers';
import { settle } from './laid-out';
import { aRequest } from './rows';

const posted = acceptAnswers();

const options: RequestOption[] = [
  { id: 'yes', label: 'Allow', kind: 'allow' },
  { id: 'no', label: 'Deny', kind: 'deny' },
];
const open = async (fields: Partial<RequestItem>) => {
  render(<Around>{renderRequest(aRequest({ id: 'q', title: 'Ask', options, ...fields }))}</Around>);
  await act(settle);
};
const press = (name: string) => act(async () => fireEvent.click(screen.getByRole('button', { name })));
/** Moves everything down. */
const moveDown = () =>
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockImplementation(() => new DOMRect(10, 300, 100, 24));

describe('a press on a request card', () => {
  it('answers once the card is settled', async () => {
    await open({ input: null });
    await press('Allow');
    expect(posted).toEqual([{ request: 'q', behavior: 'allow', optionId: 'yes', digest: 'd1' }]);
  });

  it('is ignored after the card has moved, until it settles', async () => {
    await open({ input: null });
    moveDown();
    await press('Allow');
    expect(posted).toEqual([]);
    await act(settle);
    await press('Allow');
    expect(posted).toHaveLength(1);
  });

  it('can’t allow an input that was not seen in full, but can deny it', async () => {
    await open({ input: { command: Array.from({ length: 200 }, (_, index) => `echo ${index}`).join('\n') } });
    await press('Allow');
    fireEvent.keyDown(screen.getByRole('region'), { key: 'a' });
    expect(posted).toEqual([]);
    await press('Deny');
    expect(posted).toMatchObject([{ behavior: 'deny' }]);
  });
});
