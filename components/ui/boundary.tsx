'use client';

import { Component, type ReactNode } from 'react';

interface BoundaryProps {
  /** What is shown inside. When it changes, it is tried again. */
  of: unknown;
  /** Shown in its place when it can't be. */
  fallback: ReactNode;
  children: ReactNode;
}

interface BoundaryState {
  failed: boolean;
  of: unknown;
}

/**
 * One part of a page that may fail alone.
 *
 * Failure: what its children throw while they render stays here; React tells the browser's console of it. On the
 * server nothing is caught: there the page's own Suspense leaves the rendering to the browser, and so to this.
 */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failed: false, of: this.props.of };

  static getDerivedStateFromError(): Partial<BoundaryState> {
    return { failed: true };
  }

  static getDerivedStateFromProps(props: BoundaryProps, state: BoundaryState): BoundaryState | null {
    return props.of === state.of ? null : { failed: false, of: props.of };
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}
