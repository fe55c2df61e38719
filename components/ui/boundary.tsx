'use client';

import { Component, type ReactNode } from 'react';

interface BoundaryProps {
  /** Identifies the content: a new value renders the children again after a failure. */
  of: unknown;
  fallback: ReactNode;
  children: ReactNode;
}

interface BoundaryState {
  failed: boolean;
  of: unknown;
}

/**
 * Error boundary for one part of a page.
 *
 * Failure: an error thrown while the children render is logged to the console and replaced by `fallback`. On the server
 * the page's Suspense boundary catches it and leaves the rendering to the browser.
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
