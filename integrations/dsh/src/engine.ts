/** What the plugin asks of rwd, in its own words; `wire.ts` says it in the sidecar's. Tests put a fake in its place. */

/** Where a session's workspace is. */
export interface Opened {
  readonly root: string
  /** 000's `isGitRepo`: the root lies in a git worktree. */
  readonly isGitRepo: boolean
  /** What 002 prints: `git` in a git worktree with a commit, else `copy`. */
  readonly provider: 'git' | 'copy'
  /** A restore of earlier was interrupted and has to be settled first. */
  readonly unfinished?: string
}

export interface SessionRef {
  readonly id: string
  readonly cwd: string
  readonly parent?: string
  readonly seedLength?: number
  /** Counts as its parent's work (K-40). */
  readonly subagentOf?: string
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
  /** Files that no point holds, and why: too large, unreadable, a repository of their own. */
  readonly uncovered?: readonly { readonly path: string; readonly reason: string }[]
}

export interface Point {
  readonly id: string
  readonly session: string
  readonly kind: string
  readonly turn?: number
  readonly step?: number
  readonly tree?: string
  readonly trigger?: string
  /** For what came in from an older store: it is one of 002's records, not the end of a turn of 000. */
  readonly fromRewind?: boolean
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

/** 000's record of a closed turn. */
export interface TurnRecord {
  readonly turn: number
  readonly changedCount: number
  readonly capturedAt: number
}

export interface Listing {
  readonly points: readonly Point[]
  readonly turns: readonly TurnRecord[]
  /** Milliseconds since the epoch, and why. */
  readonly unprotectedSince?: number
  readonly unprotectedReason?: string
}

export type Scope = 'both' | 'files' | 'chat'

/** What happens to files that somebody else edited since: refuse naming them, leave them, or bring them back too. */
export type Drift = 'ask' | 'keep' | 'overwrite'

export interface RestoreRequest {
  readonly target: string
  readonly scope: Scope
  readonly exact: boolean
  readonly drift?: Drift
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
  /** Those of the last two that the plan would write or remove: they need a decision. */
  readonly undecided: readonly string[]
  readonly notes: readonly string[]
  readonly blocked: readonly { readonly path: string; readonly reason: string }[]
  readonly unchanged: number
  /** `null`: there is nothing before the first turn. */
  readonly cut: { readonly seq: number | null; readonly rule: string } | null
}

export interface Outcome {
  readonly op?: string
  /** 000's k: the operation is the session's k-th. */
  readonly nth?: number
  readonly status: 'restored' | 'partial' | 'nothing'
  readonly restored: readonly string[]
  readonly removed: readonly string[]
  readonly keptNew: readonly string[]
  readonly blocked: readonly { readonly path: string; readonly reason: string }[]
  readonly guard?: string
  readonly childSessionId?: string
  readonly contextOnly: boolean
  readonly notForked?: string
  readonly notes: readonly string[]
}

export interface Mark {
  readonly id: number
  readonly logLength: number
  readonly turn: number | null
  readonly objective?: string
  readonly folded: boolean
}

export interface Change {
  readonly path: string
  readonly kind: string
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
  /** `ancestors`: points of all sessions of the workspace. */
  list(session: string, allSessions?: boolean): Promise<Listing>
  preview(session: string, request: RestoreRequest): Promise<Preview>
  /** The user, or the policy, has said yes. */
  restore(session: string, request: RestoreRequest): Promise<Outcome>
  /** 000's −k: the session's k-th operation. */
  undoNth(session: string, k: number, insideTurn: boolean): Promise<Outcome>
  /** What differs between two points. */
  diff(session: string, from: string, to: string): Promise<readonly Change[]>
  /** Removes the points that `/rewind` lists; `all`: those of every session of the workspace. `kept`: something still needs them. */
  drop(session: string, all: boolean): Promise<{ readonly dropped: number; readonly kept: number }>
  mark(session: string, seq: number, turn: number | null, objective?: string): Promise<{ id: number; logLength: number }>
  latestMark(session: string): Promise<Mark | undefined>
  completeFold(session: string, id: number): Promise<void>
  /** Names the end of the last completed turn; an automatic line has no label of its own. */
  nameSet(session: string, point: { kind: 'manual' | 'auto-turn' | 'auto-error'; label?: string; note?: string; limit: number }): Promise<NamedPoint>
  nameList(session: string): Promise<readonly NamedPoint[]>
  closeSession(session: string): Promise<void>
  /** From now on nothing new is started. */
  close(): void
  end(): Promise<void>
}

/** Whether a call failed because the process went away, not because the engine said no. */
export function engineLost(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'SIDECAR_GONE'
}
