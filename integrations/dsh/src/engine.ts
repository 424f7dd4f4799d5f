/** What the plugin asks of rwd, in its own words; `wire.ts` says it in the sidecar's. Tests put a fake in its place. */

/** Where a session's workspace is. */
export interface Opened {
  readonly root: string
  /** 000's `isGitRepo`: the root lies in a git worktree. */
  readonly isGitRepo: boolean
  /** What 002 prints: `git` in a git worktree with a commit, else `copy`. */
  readonly provider: 'git' | 'copy'
}

export interface SessionRef {
  readonly id: string
  readonly cwd: string
  readonly parent?: string
  readonly seedLength?: number
}

export type CaptureKind = 'step' | 'mutation' | 'auto' | 'manual'

export interface CaptureRequest {
  readonly kind: CaptureKind
  readonly turn: number
  readonly step?: number
  readonly seq: number
  readonly trigger?: string
  readonly note?: string
  readonly callId?: string
  readonly deadlineMs?: number
}

/** `gap`: no point was made, and why; the engine has written that down. */
export interface Captured {
  readonly id?: string
  readonly created: boolean
  readonly changed: number
  readonly gap?: string
}

export interface Point {
  readonly id: string
  readonly session: string
  readonly kind: string
  readonly turn?: number
  readonly step?: number
  readonly tree?: string
  readonly trigger?: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly changed: number
  readonly bytes: number
  readonly note?: string
  readonly names: readonly string[]
  readonly restorable: boolean
  /** Where the conversation would be cut; nothing: before its first turn. */
  readonly cutBefore?: number
}

export interface Listing {
  readonly points: readonly Point[]
  readonly unprotectedSince?: string
}

export type Scope = 'both' | 'files' | 'chat' | 'config' | 'all'

export interface RestoreRequest {
  readonly target: string
  readonly scope: Scope
  readonly exact: boolean
  readonly guard: 'warn' | 'require' | 'off'
  readonly paths?: readonly string[]
  /** 000: outside git worktrees the files stay as they are. */
  readonly gitOnly?: boolean
  readonly boundary?: 'before' | 'after'
  /** The plan that was shown: anything else is refused as stale. */
  readonly plan?: string
  /** The call comes from inside the open turn. */
  readonly insideTurn?: boolean
}

export interface Preview {
  readonly plan: string
  readonly target: string
  readonly overwrite: readonly string[]
  readonly recreate: readonly string[]
  readonly remove: readonly string[]
  readonly keptNew: readonly string[]
  readonly handMade: readonly string[]
  readonly foreign: readonly string[]
  readonly blocked: readonly { readonly path: string; readonly reason: string }[]
  readonly unchanged: number
  /** `null`: there is nothing before the first turn. */
  readonly cut: { readonly seq: number | null; readonly rule: string } | null
}

export interface Outcome {
  readonly op?: string
  readonly status: 'restored' | 'partial' | 'nothing'
  readonly restored: readonly string[]
  readonly removed: readonly string[]
  readonly keptNew: readonly string[]
  readonly blocked: readonly { readonly path: string; readonly reason: string }[]
  readonly guard?: string
  readonly childSessionId?: string
  readonly contextOnly: boolean
  readonly notForked?: string
  readonly warnings: readonly string[]
}

export interface Mark {
  readonly id: number
  readonly logLength: number
  readonly turn: number | null
  readonly objective?: string
  readonly folded: boolean
}

export interface NamedPoint {
  readonly label: string
  readonly session: string
  readonly seq: number
  readonly note?: string
}

export interface Engine {
  open(session: SessionRef): Promise<Opened>
  turnBegin(session: string, turn: number, seq: number): Promise<Captured>
  turnEnd(session: string, turn: number, seq: number, reason: string): Promise<Captured>
  stepEnd(session: string, turn: number, step: number, seq: number): Promise<void>
  capture(session: string, request: CaptureRequest): Promise<Captured>
  list(session: string): Promise<Listing>
  preview(session: string, request: RestoreRequest): Promise<Preview>
  /** The user, or the policy, has said yes. */
  restore(session: string, request: RestoreRequest): Promise<Outcome>
  /** 000's −k: the session's k-th operation. */
  undoNth(session: string, k: number, insideTurn: boolean): Promise<Outcome>
  /** How many operations the session has had: the next one's k is one more. */
  operations(session: string): Promise<number>
  drop(session: string, all: boolean): Promise<number>
  mark(session: string, seq: number, turn: number | null, objective?: string): Promise<{ id: number; logLength: number }>
  latestMark(session: string): Promise<Mark | undefined>
  completeFold(session: string, id: number): Promise<void>
  nameSet(session: string, point: { label: string; note?: string; seq: number; limit: number }): Promise<void>
  nameList(session: string): Promise<readonly NamedPoint[]>
  end(): Promise<void>
}

/** Whether a call failed because the process went away, not because the engine said no. */
export function engineLost(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'SIDECAR_GONE'
}
