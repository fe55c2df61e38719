import { isValidElement, type ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { BrokenTurn, TurnRow } from '@/components/transcript/turn-list';
import { Boundary } from '@/components/ui/boundary';
import { aTurn } from './rows';

/** The error boundary around a turn, as a React element: renderers without a document catch no errors. */
function boundaryAround(row: ReactElement<{ turn: ReturnType<typeof aTurn>; flash: boolean }>): Boundary {
  const element = TurnRow(row.props);
  if (!isValidElement<Boundary['props']>(element) || element.type !== Boundary) throw new Error('no boundary');
  return new Boundary(element.props);
}

describe('a turn that fails to render', () => {
  const turn = aTurn({ id: 'r1' });

  it('is one line with a reload button, at its own anchor', () => {
    const boundary = boundaryAround(<TurnRow turn={turn} flash={false} />);
    expect(boundary.render()).toBe(boundary.props.children);
    boundary.state = { ...boundary.state, ...Boundary.getDerivedStateFromError() };
    const markup = renderToStaticMarkup(boundary.render());
    expect(markup).toBe(renderToStaticMarkup(<BrokenTurn turn={turn} />));
    expect(markup).toContain('This turn can’t be shown.');
    expect(markup).toContain('>Reload</button>');
    expect(markup).toContain('id="turn-r1"');
  });

  it('renders again only when it has changed', () => {
    const boundary = boundaryAround(<TurnRow turn={turn} flash={false} />);
    const failed = { ...boundary.state, ...Boundary.getDerivedStateFromError() };
    expect(Boundary.getDerivedStateFromProps(boundary.props, failed)).toBeNull();
    const changed = { ...boundary.props, of: aTurn({ id: 'r1' }) };
    expect(Boundary.getDerivedStateFromProps(changed, failed)).toEqual({ failed: false, of: changed.of });
  });
});
