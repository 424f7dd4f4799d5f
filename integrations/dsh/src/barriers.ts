/**
 * System 004: what was decided is on the disk before it has an effect (004-02 … 08). Mounted only where the host has no
 * such policy of its own: a second flush would cost a wait and prove nothing.
 */

import type { Context, Session, ToolExecution, ToolFailureResult } from './host.ts'

const POLICY = '@deepseek-ai/dsh-session-checkpoint-policy'

/** Whether the profile mounts the host's own policy; unknown counts as no. */
export function hostHasBarriers(ctx: Context): boolean {
  const loader = ctx.get('loader') as { entries?: () => Iterable<unknown> } | undefined
  if (typeof loader?.entries !== 'function') return false
  try {
    for (const entry of loader.entries()) {
      const { name, disabled } = ((entry as { options?: unknown }).options ?? entry) as { name?: unknown; disabled?: unknown }
      if (name === POLICY && disabled !== true) return true
    }
  } catch {
    // Another shape of the loader: mount ours.
  }
  return false
}

function aborted(): ToolFailureResult {
  const message = 'tool call aborted before dispatch'
  return {
    content: [{ type: 'text', text: `Error: ${message}` }],
    isError: true,
    error: { message, info: { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' } },
  }
}

export function mountBarriers(ctx: Context): void {
  ctx.on('llm/stream', ((options: { sessionId?: string }, next: () => AsyncIterable<unknown>) => {
    const session = options.sessionId === undefined ? undefined : ctx.sessions.get(options.sessionId)
    return session === undefined ? next() : afterFlush(ctx, session, next)
  }) as never)
  ctx.on('tools/execute', (async (exec: ToolExecution, next: () => Promise<unknown>) => {
    // Nested calls rely on the barrier of the outer one (004-05).
    if (exec.agent === undefined || exec.parent !== undefined) return next()
    await ctx.sessions.flush(exec.agent.session)
    return exec.signal.aborted ? aborted() : next()
  }) as never)
  ctx.on('agent/pre-step', (async ({ agent }: { agent: { session: Session } }, next: () => Promise<unknown>) => {
    await ctx.sessions.flush(agent.session)
    return next()
  }) as never)
}

/** The stream is made only when it is pulled and the log is on the disk (004-02). */
async function* afterFlush(ctx: Context, session: Session, next: () => AsyncIterable<unknown>): AsyncIterable<unknown> {
  await ctx.sessions.flush(session)
  yield* next()
}
