/**
 * Nothing is overwritten before somebody said yes (002-33). The user interface is asked where there is one, else the
 * approval of an open turn; with neither, or with anything but a clear yes, nothing happens.
 */

import type { Config } from './config.ts'
import { eventsOf, service, type Agent, type Context } from './host.ts'
import { openTurn } from './log.ts'

export interface Question {
  readonly agent: Agent
  readonly question: string
  readonly detail: string
  /** Labels that mean yes, the least first, and the one that means no (TH08). Approval knows one yes: the first. */
  readonly yes: readonly string[]
  readonly no: string
  readonly toolName: string
  readonly callId?: string
  readonly signal?: AbortSignal
}

/** `choice`: which yes. */
export type Answer = { readonly allowed: true; readonly choice: number } | { readonly allowed: false; readonly why: string }

const denied = (why: string): Answer => ({ allowed: false, why })

/** Asks once. Never throws: whatever goes wrong is a no. */
export async function confirm(ctx: Context, config: Pick<Config, 'confirmVia'>, question: Question): Promise<Answer> {
  const questions = service(ctx, 'userQuestions')
  const approval = service(ctx, 'approval')
  const { confirmVia } = config
  if (confirmVia !== 'approval' && questions !== undefined) return viaQuestions(questions, question)
  if (confirmVia === 'userQuestions') return denied('confirmVia is userQuestions, and this profile has no such service')
  if (approval !== undefined) return viaApproval(approval, question)
  return denied(
    confirmVia === 'approval'
      ? 'confirmVia is approval, and this profile has no such service'
      : 'nobody can be asked: this profile has neither userQuestions nor approval',
  )
}

async function viaQuestions(questions: NonNullable<ReturnType<typeof service<'userQuestions'>>>, asked: Question): Promise<Answer> {
  const id = 'rwd-confirm'
  try {
    const answer = await questions.ask({
      questions: [{ id, header: 'rwd', question: asked.question, detail: asked.detail, options: [...asked.yes, asked.no].map(label => ({ label })) }],
      agent: asked.agent,
      ...(asked.signal === undefined ? {} : { signal: asked.signal }),
    })
    const given = answer?.answers?.find(item => item.id === id)
    // A text of one's own is no choice of the label, whatever it says (TH05).
    const label = given?.custom === undefined && given?.selected?.length === 1 ? given.selected[0] : undefined
    const choice = label === undefined ? -1 : asked.yes.indexOf(label)
    return choice >= 0 ? { allowed: true, choice } : denied('it was not confirmed')
  } catch (error) {
    return denied(`nobody answered: ${(error as Error).message}`)
  }
}

async function viaApproval(approval: NonNullable<ReturnType<typeof service<'approval'>>>, asked: Question): Promise<Answer> {
  // Between turns the host throws: the decision belongs into the log of a turn (TH11).
  if (openTurn(eventsOf(asked.agent.session)) === undefined)
    return denied('approval needs an open turn: ask the agent to call checkpoint_restore, or use a profile with userQuestions')
  try {
    const outcome = await approval.request({
      agent: asked.agent,
      toolName: asked.toolName,
      reason: `${asked.question}\n${asked.detail}`,
      ...(asked.callId === undefined ? {} : { callId: asked.callId }),
      ...(asked.signal === undefined ? {} : { signal: asked.signal }),
    })
    return outcome === 'allowed-once' ? { allowed: true, choice: 0 } : denied(`approval: ${outcome}`)
  } catch (error) {
    return denied(`approval failed: ${(error as Error).message}`)
  }
}
