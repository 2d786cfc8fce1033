package peer;

import io.agentscope.core.message.ContentBlock;
import io.agentscope.core.message.TextBlock;
import io.agentscope.core.message.ThinkingBlock;
import io.agentscope.core.message.ToolUseBlock;
import io.agentscope.core.model.ChatResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * What the model says, and how the agent is run.
 *
 * <p>Everything hangs on the ids of the model's chunks: AgentScope leaves the aggregate of an
 * iteration out when it has the id of the last chunk, and sends it as one more append otherwise. A
 * chunk without an id gets a random one.
 *
 * @param iterations what the model says, one list for each iteration of the agent; made anew
 *     for each answer
 * @param incremental false: the runner asks the agent for the text so far in each event
 * @param inner true: tool results leave too
 */
record Variant(
        Supplier<List<List<ChatResponse>>> iterations, boolean incremental, boolean inner) {

    /** Agents of 1.0.12 share their memory, where a tool call of a known id is not run again. */
    private static final AtomicInteger CALLS = new AtomicInteger();

    static final Map<String, Variant> ALL =
            Map.ofEntries(
                    Map.entry("constant_id", once(english("c1"))),
                    // a provider whose last chunk brings only the usage; Ollama gives no ids at all
                    Map.entry("last_chunk_without_id", once(closed(english("c1")))),
                    Map.entry("no_ids", once(english(null))),
                    Map.entry("ollama", once(closed(english(null)))),
                    Map.entry("snapshots", new Variant(() -> List.of(english("c1")), false, false)),
                    Map.entry("chinese_ollama", once(closed(chinese(null)))),
                    Map.entry(
                            "chinese_snapshots", new Variant(() -> List.of(chinese("c1")), false, false)),
                    // a surrogate pair in two chunks: AgentScope writes each half as `?`
                    Map.entry("cut_emoji", once(cutEmoji("c1"))),
                    Map.entry("cut_emoji_ollama", once(closed(cutEmoji(null)))),
                    Map.entry("thinking_ollama", once(closed(thinking(null)))),
                    Map.entry("react", new Variant(() -> react("c1", "c2"), true, false)),
                    Map.entry(
                            "react_ollama",
                            new Variant(
                                    () -> react(null, null).stream().map(Variant::closed).toList(),
                                    true,
                                    false)),
                    Map.entry("react_snapshots", new Variant(() -> react("c1", "c2"), false, false)),
                    Map.entry("react_inner", new Variant(() -> react("c1", "c2"), true, true)));

    private static Variant once(List<ChatResponse> chunks) {
        return new Variant(() -> List.of(chunks), true, false);
    }

    private static List<ChatResponse> english(String id) {
        return List.of(
                text(id, "Hi "), text(id, "Mira, which "), text(id, "region should I query?"));
    }

    private static List<ChatResponse> closed(List<ChatResponse> chunks) {
        return Stream.concat(chunks.stream(), Stream.of(chunk(null, List.of()))).toList();
    }

    private static List<ChatResponse> chinese(String id) {
        return List.of(
                text(id, "👋 你好"), text(id, " 米拉。"), text(id, "请先告诉我要查询哪个区域"));
    }

    private static List<ChatResponse> cutEmoji(String id) {
        return List.of(text(id, "你好\ud83d"), text(id, "\udc4b 米拉。"), text(id, "哪个区域"));
    }

    private static List<ChatResponse> thinking(String id) {
        return List.of(
                thought(id, "The user is "),
                thought(id, "looking for a region. "),
                text(id, "Hi Mira, "),
                text(id, "which region?"));
    }

    private static List<List<ChatResponse>> react(String first, String second) {
        ToolUseBlock call =
                ToolUseBlock.builder()
                        .id("t" + CALLS.incrementAndGet())
                        .name("regions")
                        .input(Map.of())
                        .content("{}")
                        .build();
        return List.of(
                List.of(text(first, "Let me "), text(first, "look. "), chunk(first, List.of(call))),
                List.of(text(second, "There are "), text(second, "two: north and south.")));
    }

    private static ChatResponse text(String id, String text) {
        return chunk(id, List.of(TextBlock.builder().text(text).build()));
    }

    private static ChatResponse thought(String id, String text) {
        return chunk(id, List.of(ThinkingBlock.builder().thinking(text).build()));
    }

    private static ChatResponse chunk(String id, List<ContentBlock> content) {
        return ChatResponse.builder().id(id).content(content).build();
    }
}
