package peer;

import io.agentscope.core.message.Msg;
import io.agentscope.core.message.MsgRole;
import io.agentscope.core.model.ChatResponse;
import io.agentscope.core.model.GenerateOptions;
import io.agentscope.core.model.Model;
import io.agentscope.core.model.ToolSchema;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import reactor.core.publisher.Flux;

/**
 * A language model that plays a script: one list of chunks for each iteration of the agent.
 *
 * <p>Which iteration it is, the tool results behind the last user message tell: one agent serves
 * one request, but all agents of a server share this model.
 */
record ScriptedModel(Supplier<List<List<ChatResponse>>> iterations) implements Model {

    private static final Duration BETWEEN_CHUNKS = Duration.ofMillis(20);

    @Override
    public Flux<ChatResponse> stream(
            List<Msg> messages, List<ToolSchema> tools, GenerateOptions options) {
        int done = 0;
        for (int i = messages.size() - 1; i >= 0 && messages.get(i).getRole() != MsgRole.USER; i--) {
            if (messages.get(i).getRole() == MsgRole.TOOL) {
                done++;
            }
        }
        return Flux.fromIterable(iterations.get().get(done)).delayElements(BETWEEN_CHUNKS);
    }

    @Override
    public String getModelName() {
        return "scripted";
    }
}
